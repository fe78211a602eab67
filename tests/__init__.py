"""The tests of plusequals; they import the package through its face, never a folder by path."""

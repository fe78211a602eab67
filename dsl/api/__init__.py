"""What users touch: the decorator, the words of the language, what functions offer."""

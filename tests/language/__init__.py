"""The language page, case by case: notation, examples, rulings, errors."""

"""Text: estimates of its size, wording of numbers and lists, documents, quotations."""

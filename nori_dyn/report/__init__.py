"""What was found, for people and for programs: text, tables, JSON, pages, pictures, progress."""

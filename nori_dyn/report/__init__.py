"""What was found, for people and for programs: text, tables, JSON, the page, pictures, progress."""

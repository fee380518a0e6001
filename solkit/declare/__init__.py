"""What an author writes, and how declarations are found."""

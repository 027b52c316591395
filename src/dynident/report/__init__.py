"""What people read: a fit as text and as a page, and what commands print and draw."""

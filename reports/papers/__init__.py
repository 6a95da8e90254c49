"""Tables and figures of the papers: claims, measurements and their pages."""

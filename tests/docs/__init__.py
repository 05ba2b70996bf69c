"""The docs: pages made of the checks' own documentation, and the site that Sphinx makes of them."""

"""Whole machines with one fault each, and what the doctor has to say of them."""

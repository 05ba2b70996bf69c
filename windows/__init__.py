"""What only Windows needs: its probe, the search order of its loader, its C++ runtime."""

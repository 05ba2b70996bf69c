"""Who gets which sample: index arithmetic without processes, and what it comes to.

``dealing`` deals indices out as torch and accelerate do, ``audit`` counts, ``verdict`` makes
findings of the counts, ``picture`` shows them in a terminal.
"""

"""A small training program on several processes, to be read, run and copied.

``data`` says what is trained on what, ``engine`` trains, ``state`` keeps and restores, ``train``
puts them together on each rank, ``launch`` starts the ranks and keeps the record of a run. It
needs torch and nothing else, and works from any folder whose name is an identifier:

    python FOLDER/launch.py --nproc 2 --dir RUN -- --steps 100 --amp bf16
"""

"""The papers' tables, grids of trainings, transfer between domains; and the stand-ins of ``--smoke``."""

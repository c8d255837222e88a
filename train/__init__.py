"""Training: ``negsample.train.job.train`` does all of it; ``accelerate launch -m negsample train`` runs it."""

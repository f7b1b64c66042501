"""What a service promises: the normalised model, and the sources that specs come from."""

"""Training: the reward, supervised fine-tuning and reinforcement learning on what the other rooms made."""

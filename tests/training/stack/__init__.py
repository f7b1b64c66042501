"""Tests of training with its real libraries; collected only where they are installed."""

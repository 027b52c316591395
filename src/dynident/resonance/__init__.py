"""Springs in the joints from the motor's side alone, by the resonance of the link behind them."""

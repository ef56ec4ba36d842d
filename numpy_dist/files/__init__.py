"""Files: which bytes are whose, and how a new one takes the place of an old one, whole or not at all."""

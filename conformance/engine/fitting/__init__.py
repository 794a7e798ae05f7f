"""The search of the models that give a set of answers, stage by stage."""

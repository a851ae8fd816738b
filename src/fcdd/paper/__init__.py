"""The paper's models and experiments: recipes, runs, grids of jobs, and tables and figures beside the published."""

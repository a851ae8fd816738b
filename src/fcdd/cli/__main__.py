from fcdd.cli import app

app()

"""What `seamark doctor` looks at. A check asks the machine one question and answers with outcomes."""

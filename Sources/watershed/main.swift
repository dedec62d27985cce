print("watershed")

"""What runs texts of others: commands in processes with limits (`limits`), those that the language
server asks for (`trials`), and the playground (`server`, `page`).
"""

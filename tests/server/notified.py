"""What a service sends to its manager.

notified.py ADDRESS: prints a line for each datagram. @NAME is an abstract socket.
"""
import socket
import sys

address = sys.argv[1]
listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listener.bind("\0" + address[1:] if address.startswith("@") else address)
print("listening", flush=True)
while True:
    print(listener.recv(65536).decode().replace("\n", " "), flush=True)

"""The connection to an MQTT broker, which comes back by itself: what arrives waits in a queue for whoever asks."""

import contextlib
import queue
import socket
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import paho.mqtt.client as mqtt

from ..errors import SettingsError, shown
from .messages import MOST_BYTES, MessageError

RECONNECT_S = 1, 15  # seconds between two attempts, at first and at most
KEEPALIVE_S = 15
MOST_WAITING = 100_000  # messages


@dataclass(frozen=True)
class Address:
    """Where a broker is, and how it is spoken to.

    ca: file of the certificates that are believed; with `tls` and without it, the system's
    certificate, key: files by which this client shows who it is
    """

    host: str = "localhost"
    port: int = 0
    user: str = ""
    password: str = ""
    tls: bool = False
    ca: str = ""
    certificate: str = ""
    key: str = ""

    @property
    def secure(self) -> bool:
        return self.tls or bool(self.ca or self.certificate or self.key)

    def context(self) -> ssl.SSLContext:
        """Raises SettingsError for files that are none."""
        if self.key and not self.certificate:
            raise SettingsError(f"TLS key {shown(self.key)} has no certificate; allowed: both, or neither")
        try:
            context = ssl.create_default_context(cafile=self.ca or None)
            if self.certificate:
                context.load_cert_chain(self.certificate, self.key or None)
        except (OSError, ssl.SSLError) as error:
            names = ", ".join(filter(None, (self.ca, self.certificate, self.key)))
            raise SettingsError(f"TLS files {names}: {error}; allowed: certificates and a key in PEM") from error
        return context


class Arrived(NamedTuple):
    topic: str
    payload: bytes
    retained: bool


class Broker:
    """One client of a broker. Messages that cannot be sent now are dropped: who sends them sees to it that they arrive.

    client_id: one that stays the same has the broker keep messages of quality 1 while this client is away
    topics: [(filter, quality of service)]; will: (topic, payload) that the broker tells when this client is lost
    connected: called, on the client's thread, whenever the connection is there; up: is it there? fault: why not
    """

    def __init__(
        self,
        address: Address,
        client_id: str,
        topics: Iterable[tuple[str, int]],
        will: tuple[str, bytes] | None = None,
        connected: Callable[[], None] = lambda: None,
        lasting: bool = False,
    ) -> None:
        self.arrived: queue.Queue[Arrived] = queue.Queue(MOST_WAITING)
        self.fault = "it has not answered yet"
        self._topics, self._connected, self.up = list(topics), connected, False
        callbacks = getattr(mqtt, "CallbackAPIVersion", None)  # paho-mqtt 1.6 has one kind of them
        kind: dict[str, Any] = {"callback_api_version": callbacks.VERSION2} if callbacks else {}
        client = self._client = mqtt.Client(
            client_id=client_id, clean_session=not lasting, protocol=mqtt.MQTTv311, **kind
        )
        client.on_connect, client.on_disconnect, client.on_message = self._came, self._went, self._take
        client.on_connect_fail = self._failed
        client.reconnect_delay_set(*RECONNECT_S)
        if address.user:
            client.username_pw_set(address.user, address.password or None)
        if address.secure:
            client.tls_set_context(address.context())
        if will:
            client.will_set(*will, qos=1, retain=True)
        port = address.port or (8883 if address.secure else 1883)
        try:
            client.connect_async(address.host, port, KEEPALIVE_S)
        except ValueError as error:
            raise SettingsError(f"broker {address.host}:{port}: {error}") from error

    def start(self) -> None:
        """Connect, now and whenever the connection is lost, until `close`."""
        self._client.loop_start()

    def send(self, topic: str, payload: bytes, quality: int = 0, retain: bool = False) -> bool:
        """-> was it handed to the broker's connection?"""
        if not self.up:
            return False
        try:
            return self._client.publish(topic, payload, quality, retain).rc == mqtt.MQTT_ERR_SUCCESS
        except ValueError as error:  # a topic that holds a wildcard, a payload that is too long
            raise MessageError(f"topic {topic!r} cannot be sent to: {error}") from error

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def cut(self) -> None:
        """Lose the connection without a word, as a vehicle in a dead spot does; it comes back by itself."""
        connection: Any = self._client.socket()
        if connection is not None:
            with contextlib.suppress(OSError):  # it is lost already
                connection.shutdown(socket.SHUT_RDWR)

    def _came(self, client: Any, data: Any, flags: Any, reason: Any, *properties: Any) -> None:
        if reason != 0:  # of paho-mqtt 1.6 a number
            text = mqtt.connack_string(reason) if isinstance(reason, int) else str(reason)
            self.fault = f"it refuses this client: {text}"
            return
        self.fault = ""
        if self._topics:
            client.subscribe(self._topics)
        self.up = True
        self._connected()

    def _went(self, client: Any, data: Any, *reasons: Any) -> None:
        self.up = False
        self.fault = self.fault or "the connection is lost"

    def _failed(self, client: Any, data: Any) -> None:
        self.up = False
        self.fault = "it cannot be reached"

    def _take(self, client: Any, data: Any, message: Any) -> None:
        try:
            payload = message.payload[: MOST_BYTES + 1]  # of what is longer, enough for it to be refused
            self.arrived.put_nowait(Arrived(message.topic, payload, message.retain))
        except queue.Full:
            self.fault = f"more than {MOST_WAITING} messages wait"

// Keeps the listeners of this process, by channel.
import type { Log } from '../platform/log.ts';

export type Listener = (message: string) => void;

export function createListeners(log: Log) {
  /** Wrapped in objects, so that the same function may be added twice. */
  const byChannel = new Map<string, Set<{ readonly listener: Listener }>>();

  return {
    /** Adds a listener, and returns the function that removes it. A listener that is added twice is called twice. */
    add(channel: string, listener: Listener) {
      const entry = { listener };
      byChannel.set(channel, (byChannel.get(channel) ?? new Set()).add(entry));
      return function remove() {
        const entries = byChannel.get(channel);
        if (entries?.delete(entry) && entries.size === 0) byChannel.delete(channel);
      };
    },
    /** Returns a function that delivers to current listeners, unless they are removed before it is called. */
    prepareDelivery(channel: string): Listener {
      const listening = [...(byChannel.get(channel) ?? [])];
      return function deliver(message) {
        for (const entry of listening) {
          if (byChannel.get(channel)?.has(entry)) callListener(log, entry.listener, message);
        }
      };
    },
    has: (channel: string) => byChannel.has(channel),
    channels: () => [...byChannel.keys()],
    clear: () => byChannel.clear(),
  };
}

/** Calls a listener: its errors must reach neither the next listener nor the connection. */
export function callListener<Message>(
  log: Log,
  listener: (message: Message) => void,
  message: Message,
): void {
  try {
    listener(message);
  } catch (cause) {
    log.error('A message from another replica could not be handled; please report this.', {
      cause,
    });
  }
}

import type { Log } from '../platform/log.ts';

export type Listener = (message: string) => void;

/** The listeners of this process, by channel. */
export interface Listeners {
  /** Returns a function that removes it. A listener that is added twice is called twice. */
  add(channel: string, listener: Listener): () => void;
  /** A function that delivers to those who listen now, and still do when it is called. */
  prepareDelivery(channel: string): (message: string) => void;
  has(channel: string): boolean;
  channels(): readonly string[];
  clear(): void;
}

export function createListeners(log: Log): Listeners {
  /** Each has an object, so that the same function may stand here twice. */
  const byChannel = new Map<string, Set<{ readonly listener: Listener }>>();

  return {
    add(channel, listener) {
      const entry = { listener };
      byChannel.set(channel, (byChannel.get(channel) ?? new Set()).add(entry));
      return function remove() {
        const entries = byChannel.get(channel);
        if (entries?.delete(entry) && entries.size === 0) byChannel.delete(channel);
      };
    },
    prepareDelivery(channel) {
      const listening = [...(byChannel.get(channel) ?? [])];
      return function deliver(message) {
        for (const entry of listening) {
          if (byChannel.get(channel)?.has(entry)) callListener(entry.listener, message);
        }
      };
    },
    has: (channel) => byChannel.has(channel),
    channels: () => [...byChannel.keys()],
    clear: () => byChannel.clear(),
  };

  /** An error of one listener must reach neither the next one nor the connection. */
  function callListener(listener: Listener, message: string): void {
    try {
      listener(message);
    } catch (cause) {
      log.error('A message from another replica could not be handled; please report this.', {
        cause,
      });
    }
  }
}

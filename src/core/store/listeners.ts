import type { Log } from '../log.ts';

export type Listener = (message: string) => void;

/** The listeners of this process, by channel. */
export interface Listeners {
  /** Returns the end of it. A function that is added twice is called twice. */
  add(channel: string, listener: Listener): () => void;
  /** Delivers to those who listen now, and still do when they are called. */
  to(channel: string): (message: string) => void;
  has(channel: string): boolean;
  channels(): readonly string[];
  clear(): void;
}

export function createListeners(log: Log): Listeners {
  /** By an object each, so that the same function may stand here twice. */
  const byChannel = new Map<string, Set<{ readonly listener: Listener }>>();

  return {
    add(channel, listener) {
      const entry = { listener };
      byChannel.set(channel, (byChannel.get(channel) ?? new Set()).add(entry));
      return function end() {
        const entries = byChannel.get(channel);
        if (entries?.delete(entry) && entries.size === 0) byChannel.delete(channel);
      };
    },
    to(channel) {
      const now = [...(byChannel.get(channel) ?? [])];
      return function deliver(message) {
        for (const entry of now) {
          if (byChannel.get(channel)?.has(entry)) call(entry.listener, message);
        }
      };
    },
    has: (channel) => byChannel.has(channel),
    channels: () => [...byChannel.keys()],
    clear: () => byChannel.clear(),
  };

  /** What one listener throws is not the business of the next, nor of the connection. */
  function call(listener: Listener, message: string): void {
    try {
      listener(message);
    } catch (cause) {
      log.error('A message from another replica could not be handled; please report this.', {
        cause,
      });
    }
  }
}

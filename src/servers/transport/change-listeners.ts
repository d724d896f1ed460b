// §18.3: those who listen to the changes of a server, by what they share at it: a session, or a process.
import { findListsThatChange } from '../../mcp/upstream/description.ts';
import type { UpstreamDescription, UpstreamListener } from '../../mcp/upstream/upstream.ts';
import { type CountedBusOptions, createCountedBus } from '../../platform/counted-bus.ts';
import type { ServerChange } from '../messages/server-message.ts';

/** `isWanted` says whether a listener wants to know of a resource that has changed. */
export function createChangeListeners<
  Listening extends { readonly listener: UpstreamListener },
  Source = void,
>(
  options: CountedBusOptions<string, Listening, Source>,
  isWanted: (key: string, listening: Listening, uri: string) => boolean,
) {
  const bus = createCountedBus(options);

  function tell(key: string, change: ServerChange): void {
    bus.publish(key, (listening) => {
      const { listener } = listening;
      if (change.kind === 'list') listener.listChanged(change.list);
      else if (change.kind === 'elicitation') listener.elicitationCompleted?.(change.elicitationId);
      else if (isWanted(key, listening, change.uri)) listener.resourceUpdated(change.uri);
    });
  }

  return {
    bus,
    tell,
    /** Nobody heard it for a while. */
    tellMissed(key: string, description: UpstreamDescription | undefined) {
      for (const list of findListsThatChange(description)) tell(key, { kind: 'list', list });
    },
  };
}

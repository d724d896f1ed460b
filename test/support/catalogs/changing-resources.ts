// A catalogue of resources that change when the test says so.
import { EventEmitter } from 'node:events';
import { createLocalCatalog, defineResource, defineTool } from '../../../src/index.ts';

export interface ChangingResources {
  readonly catalog: ReturnType<typeof createLocalCatalog>;
  /** `watched://<name>` has changed. */
  change(name: 'a' | 'b'): void;
  /** How many watch it. */
  watchers(name: 'a' | 'b'): number;
}

export function createChangingResources(): ChangingResources {
  const changes = new EventEmitter();
  const resource = (name: string, isWatched: boolean) =>
    defineResource({
      uri: `watched://${name}`,
      name,
      description: `Resource ${name}.`,
      mimeType: 'text/plain',
      ...(isWatched && {
        watch(changed: () => void) {
          changes.on(name, changed);
          return () => void changes.off(name, changed);
        },
      }),
      read: () => ({ text: name }),
    });
  return {
    catalog: createLocalCatalog({
      resources: [resource('a', true), resource('b', true), resource('still', false)],
      tools: [
        defineTool({
          name: 'nothing',
          description: 'Does nothing.',
          inputSchema: { type: 'object' },
          run: () => ({ content: [] }),
        }),
      ],
    }),
    change: (name) => void changes.emit(name),
    watchers: (name) => changes.listenerCount(name),
  };
}

/** The notification that it has changed. */
export const updated = (name: 'a' | 'b') => ({
  jsonrpc: '2.0',
  method: 'notifications/resources/updated',
  params: { uri: `watched://${name}` },
});

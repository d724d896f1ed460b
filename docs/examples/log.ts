import { defineTool } from 'postern/define';

export const rotateKeys = defineTool({
  name: 'rotate_keys',
  description: 'Renews the keys of all services.',
  inputSchema: { type: 'object', additionalProperties: false },
  run(_args, { log }) {
    log('debug', 'Looking for keys.', 'keys');
    log('warning', { service: 'search', message: 'The key was 400 days old.' }, 'keys');
    return { content: [{ type: 'text', text: 'Renewed 2 keys.' }] };
  },
});

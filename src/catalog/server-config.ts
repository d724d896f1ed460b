// Spec §2.7: config://server.
import { defineResource } from '../features/mcp/define.ts';

export const serverConfig = defineResource({
  uri: 'config://server',
  name: 'Server Configuration',
  description: 'Name, version and environment of this service.',
  mimeType: 'application/json',
  read({ service: { name, version, environment } }) {
    return { text: JSON.stringify({ name, version, environment }) };
  },
});

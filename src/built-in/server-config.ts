// §2.7: config://server.
import { defineResource } from 'postern/define';

export const serverConfig = defineResource({
  uri: 'config://server',
  name: 'Server Configuration',
  description: 'Name, version and environment of this service.',
  mimeType: 'application/json',
  // The same for everybody, until the next deploy.
  cache: { ttlMs: 60_000, scope: 'public' },
  read({ service: { name, version, environment } }) {
    return { text: JSON.stringify({ name, version, environment }) };
  },
});

// A type of credentials: each request is signed by a key of the gateway's own.
import { createHmac } from 'node:crypto';
import { defineCredentialType } from '../../../src/servers/credentials/credential-type.ts';

const KEY = 'a key that is a setting where this is meant';

export const signed = defineCredentialType<{ readonly type: 'signed' }>({
  type: 'signed',
  summary: 'a signature of each request.',
  members: [],
  required: [],
  whyNoOthers: 'the key is the gateway’s own',
  read: () => ({ type: 'signed' }),
  requirements: [],
  isOfCaller: false,
  open: () => ({
    openServer: () => ({
      sign(_caller, { method, url, body }) {
        const signature = createHmac('sha256', KEY).update(`${method} ${url}\n`).update(body);
        return { authorization: `HMAC-SHA256 ${signature.digest('hex')}` };
      },
    }),
  }),
});

// §18: whatever the gateway keeps of a caller at servers tells users of one sub by their issuers.
import { expect, test } from 'vitest';
import { nameLinkOwner } from '../../../src/catalog/linked-resources.ts';
import { createNameAudience } from '../../../src/mcp/upstream/wrap-upstream.ts';
import { hashSha256 } from '../../../src/platform/ids.ts';
import { nameSharer } from '../../../src/servers/http/sessions.ts';
import { findOwner, findProcessKey } from '../../../src/servers/stdio/server-run.ts';
import { nameOwner } from '../../../src/store/keys.ts';
import { NO_CAPABILITIES, statelessCaller } from '../../support/upstreams/requests.ts';
import { userWith } from '../../support/upstreams/rules.ts';

const callerOf = (user: object) =>
  statelessCaller({
    user: { ...userWith({ sub: 'ada' }), ...user },
    clientId: 'svc-1',
    capabilities: NO_CAPABILITIES,
  });
const ours = callerOf({});
const theirs = callerOf({ issuer: 'https://other.example' });
const others = callerOf({ issuer: 'https://third.example' });

test.each([
  {
    what: 'the resources that results named',
    name: (caller: typeof ours) => nameLinkOwner(caller, '/mcp'),
    ofDefault: `caller:${hashSha256('["/mcp","ada","svc-1"]')}`,
  },
  { what: 'a session at a server', name: nameSharer, ofDefault: '["ada","svc-1","00000"]' },
  {
    what: "a user's process",
    name: (caller: typeof ours) => findProcessKey('user', caller).id,
    ofDefault: '["user","ada"]',
  },
  {
    what: "a client's process",
    name: (caller: typeof ours) => findProcessKey('session', caller).id,
    ofDefault: '["client","ada","svc-1"]',
  },
  { what: 'subscriptions', name: findOwner, ofDefault: '["client","ada","svc-1"]' },
  {
    what: 'what a server said of itself',
    name: createNameAudience(true),
    ofDefault: hashSha256('["ada","svc-1"]'),
  },
])('§18 users of one sub do not share $what', ({ name, ofDefault }) => {
  expect(name(ours)).toBe(ofDefault);
  expect(new Set([ours, theirs, others].map(name)).size).toBe(3);
});

test.each([
  [{ sub: 'ada' }, 'ada'],
  [{ sub: 'ada', issuer: 'https://other.example' }, '["https://other.example","ada"]'],
  // What reads like another issuer's user is named as what it is.
  [
    { sub: '["https://other.example","ada"]' },
    JSON.stringify(['', '["https://other.example","ada"]']),
  ],
])('§2.1 the user %o is named %s', (owner, name) => {
  expect(nameOwner(owner)).toBe(name);
});

// §13: what the consent page says that a client will be able to do.
import { describe, expect, test } from 'vitest';
import { closeAfterTest, useShared } from '../../support/lifetimes.ts';
import { startBroker } from '../../support/oauth/broker.ts';

const ALL = { OAUTH_ALLOWED_SCOPES: '*' };
const broker = useShared(() => startBroker({ ...ALL, SERVICE_DISPLAY_NAME: 'Acme’s <tools>' }));

/** The list of the page, as text. */
const grantsOf = (html: string): readonly string[] => {
  const [, list = ''] = /<ul class="grants">([\s\S]*?)<\/ul>/.exec(html) ?? [];
  return [...list.matchAll(/<li>([\s\S]*?)<\/li>/g)].map(([, item = '']) =>
    item
      .replace(/<[^>]*>/g, '|')
      .replace(/\|+/g, '|')
      .replace(/^\||\|$/g, ''),
  );
};

async function ask(scope: string, at = broker): Promise<string> {
  const { steps } = at;
  return (await steps.authorize(await steps.register(), { scope })).text;
}

const USE = 'Use tools and data as you';

describe('scopes', () => {
  test.each([
    ['openid profile email', ['See your name and e-mail address']],
    ['email openid', ['See your e-mail address']],
    ['openid profile', ['See your name']],
    ['openid', ['See your user ID']],
    ['openid offline_access', ['See your user ID', 'Stay signed in while you are away']],
    [
      'groups tools:read openid <b>',
      ['See your user ID', 'See your groups', 'Use the other permissions listed below'],
    ],
  ])('§13 consent: %s in plain words', async (scope, expected) => {
    expect(grantsOf(await ask(scope))).toEqual([USE, ...expected]);
  });
});

test('§13 consent: the page has the name of the service', async () => {
  const html = await ask('openid');
  expect(html).toContain('<span>Acme’s &lt;tools&gt;</span>');
});

test('§13 consent: tools are named with SITE_SHOWS_TOOLS=true only', async () => {
  expect(grantsOf(await ask('openid'))[0]).toBe(USE);
  const open = closeAfterTest(await startBroker({ ...ALL, SITE_SHOWS_TOOLS: 'true' }));
  expect(grantsOf(await ask('openid', open))[0]).toBe(`${USE}|service_ping`);
});

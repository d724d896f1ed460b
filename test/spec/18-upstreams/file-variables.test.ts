// Variables of the environment in values of the configuration file.
import { expect, test } from 'vitest';
import { findServerProblems, readServer } from '../../support/upstreams/gateway-file.ts';

const ENV = {
  TOKEN: 'hunter2',
  EMPTY: '',
  NESTED: '${TOKEN}',
  PORT: '3001',
  PATTERN: '$&$1',
} as const;

/** What a server's first argument becomes. */
async function expand(text: string): Promise<unknown> {
  const server = await readServer({ command: 'x', args: [text] }, { env: ENV });
  return server?.kind === 'stdio' ? server.args[0] : undefined;
}

test.each([
  ['${TOKEN}', 'hunter2'],
  ['Bearer ${TOKEN}!', 'Bearer hunter2!'],
  ['${env:TOKEN}', 'hunter2'],
  ['${TOKEN:-other}', 'hunter2'],
  ['${UNSET:-other}', 'other'],
  ['${env:UNSET:-other}', 'other'],
  ['${EMPTY:-other}', 'other'],
  ['${UNSET:-}', ''],
  ['${UNSET:-a:-b}', 'a:-b'],
  ['${TOKEN}${PORT}', 'hunter23001'],
  ['${NESTED}', '${TOKEN}'],
  ['${PATTERN}', '$&$1'],
  ['$${TOKEN}', '${TOKEN}'],
  ['$TOKEN {TOKEN} $ $$', '$TOKEN {TOKEN} $ $$'],
])('§18.1 variables: %s becomes %s', async (text, expanded) => {
  expect(await expand(text)).toBe(expanded);
});

/** Each with a value that it may have. */
const OWN_SECRETS = {
  OAUTH_STATE_SECRET: 'hunter2-hunter2-hunter2-hunter2-hunter2',
  OAUTH_CLIENT_SECRET: 'hunter2',
  DCR_ACCESS_TOKEN: 'hunter2',
  REDIS_URL: 'redis://:hunter2@redis.example:6379',
  OTEL_EXPORTER_OTLP_HEADERS: 'authorization=hunter2',
  HTTPS_PROXY: 'http://ann:hunter2@proxy.example:3128',
  http_proxy: 'http://ann:hunter2@proxy.example:3128',
} as const;

test.each(
  Object.keys(OWN_SECRETS).flatMap((name) => [
    { name, member: 'env.X', server: { command: 'x', env: { X: `\${${name}}` } } },
    { name, member: 'args[0]', server: { command: 'x', args: [`--key=\${env:${name}}`] } },
    { name, member: 'command', server: { command: `\${${name}:-x}` } },
    { name, member: 'url', server: { url: `https://it.example?key=\${${name}}` } },
    {
      name,
      member: 'headers.Authorization',
      server: { url: 'https://it.example', headers: { Authorization: `Bearer \${${name}}` } },
    },
  ]),
)(
  '§18.1 variables: $name, a secret of the gateway, is not for $member of a server',
  async ({ name, member, server }) => {
    const problems = await findServerProblems(server, { env: OWN_SECRETS });
    expect(problems).toEqual([
      `${member}: ${name} is one of the gateway's secrets, which no server gets. If the server needs this value, put it into a separate variable, and write that variable here.`,
    ]);
  },
);

test('§18.1 variables: a setting that could hold a secret, and does not, is expanded', async () => {
  const env = {
    HTTPS_PROXY: 'http://proxy.example:3128',
    REDIS_URL: 'redis://redis.example:6379/1',
  };
  const server = {
    command: 'x',
    env: { A: '${HTTPS_PROXY}', B: '${REDIS_URL}', C: '${DCR_ACCESS_TOKEN:-none}' },
  };
  expect(await readServer(server, { env })).toMatchObject({
    env: { A: env.HTTPS_PROXY, B: env.REDIS_URL, C: 'none' },
  });
});

test.each([
  {
    text: '${UNSET}',
    says: 'The environment variable UNSET is not set. Set it (in .env, too), or write a default: ${UNSET:-default}.',
  },
  {
    text: '${EMPTY}',
    says: 'The environment variable EMPTY is empty, which counts as not set. Give it a value (in .env, too), or write a default: ${EMPTY:-default}.',
  },
  { text: '${TOKNE}', says: 'The environment variable TOKNE is not set. Did you mean TOKEN?' },
  { text: '${constructor}', says: 'The environment variable constructor is not set.' },
  { text: '${__proto__}', says: 'The environment variable __proto__ is not set.' },
  { text: '${TOKEN', says: 'A ${ has no }. For the characters ${ themselves, write $${.' },
  { text: '${}', says: 'A variable is written ${NAME}, ${NAME:-default} or ${env:NAME}.' },
  { text: '${1}', says: 'A variable is written ${NAME}' },
  { text: '${TOKEN:?missing}', says: 'A variable is written ${NAME}' },
  { text: '${A:-${TOKEN}}', says: 'The default of ${A:-…} cannot contain another variable.' },
  {
    text: '${input:github-key}',
    says: '${input:github-key} is an input that VS Code asks its user for, and Postern cannot ask. Put the value into an environment variable, and write ${GITHUB_KEY} here.',
  },
  {
    text: '${workspaceFolder}/x',
    says: '${workspaceFolder} is known to editors only: Postern has no workspace. Write the path itself.',
  },
  {
    text: '${userHome}/x',
    says: '${userHome} is known to editors only. Write ${HOME}, or the path itself.',
  },
])('§18.1 variables: $text is a problem: $says', async ({ text, says }) => {
  const problems = await findServerProblems({ command: 'x', args: [text] }, { env: ENV });
  expect(problems).toEqual([expect.stringContaining(`args[0]: ${says}`)]);
});

test('§18.1 variables: numbers and flags may come from variables', async () => {
  const server = {
    url: 'http://localhost:${PORT}/mcp',
    timeout: '${UNSET:-5000}',
    required: '${UNSET:-true}',
  };
  expect(await readServer(server, { env: ENV })).toMatchObject({
    url: 'http://localhost:3001/mcp',
    timeoutMs: 5000,
    required: true,
  });
});

test('§18.1 variables: what a variable holds is never shown', async () => {
  const server = {
    type: '${TOKEN}',
    url: '${TOKEN}',
    timeout: '${TOKEN}',
    prefix: '-${TOKEN}',
    required: '${TOKEN}',
    auth: { type: '${TOKEN}' },
  };
  const problems = await findServerProblems(server, { env: ENV });
  expect(problems).toHaveLength(6);
  expect(problems).toContainEqual(
    expect.stringMatching(/^timeout: The value of "\$\{TOKEN\}" is not valid\. It must be milli/),
  );
  expect(problems.join('\n')).not.toContain('hunter2');
});

test('§18.1 variables: names are not expanded', async () => {
  const server = await readServer({ command: 'x', env: { '${TOKEN}': 'a' } }, { env: ENV });
  expect(server?.kind === 'stdio' && server.env).toEqual({ '${TOKEN}': 'a' });
});

// The official conformance tool's scenarios for authorization servers. Whatever it does not call a
// success, its warnings included, is a failure here.
import { beforeAll, expect, test } from 'vitest';
import { freePort } from '../support/gateway/ports.ts';
import { startService } from '../support/gateway/service.ts';
import { useShared } from '../support/lifetimes.ts';
import { approve } from '../support/oauth/login-browser.ts';
import { openBrowser } from '../support/tools/chromium.ts';
import {
  type ConformanceTool,
  INSTALLATION_MS,
  installConformance,
  type Report,
  runConformance,
} from '../support/tools/conformance.ts';

const METADATA: Report = {
  'authorization-server-metadata-endpoint': [
    'authorization-server-metadata: SUCCESS',
    'authorization-server-metadata-cimd: SUCCESS',
  ],
};
const CODE_GRANT: Report = {
  'authorization-code-grant': ['authorization-code-grant: SUCCESS'],
};
const SLOW = { timeout: 120_000 } as const;

const browser = useShared(openBrowser, INSTALLATION_MS);
const service = useShared(() => startService({ mode: 'broker' }));
let tool: ConformanceTool;
beforeAll(async () => {
  tool = await installConformance();
}, INSTALLATION_MS);

test('§4.10 conformance: the metadata endpoint of a broker passes', SLOW, async ({ signal }) => {
  const { exitCode, output, report } = await runConformance(tool, {
    args: [
      'authorization',
      ...['--url', service.baseUrl],
      ...['--scenario', 'authorization-server-metadata-endpoint'],
    ],
    signal,
  });
  expect(report, output).toEqual(METADATA);
  expect(exitCode, output).toBe(0);
});

// On its own (--scenario) the grant cannot pass: it takes the endpoints from the other's result.
test.for([
  ['without a resource', () => []],
  ['for /mcp as its resource', () => ['--resource', service.mcpUrl.href]],
] as const)(
  '§4.6 conformance: the authorization code grant of a broker passes, %s',
  SLOW,
  async ([_request, args], { signal }) => {
    const port = await freePort();
    const redirectUri = `http://127.0.0.1:${port}/callback`;
    const visited: string[] = [];
    const { exitCode, output, report } = await runConformance(tool, {
      args: [
        'authorization',
        ...['--url', service.baseUrl],
        ...['--client-id', await register(redirectUri)],
        ...['--port', String(port)],
        ...args(),
      ],
      signal,
      async visit(url) {
        visited.push(url);
        await logIn(url, redirectUri);
      },
    });
    expect(report, output).toEqual({ ...METADATA, ...CODE_GRANT });
    expect(exitCode, output).toBe(0);
    expect(visited).toEqual([expect.stringContaining(`${service.baseUrl}/oauth/authorize?`)]);
  },
);

async function register(redirectUri: string): Promise<string> {
  const answer = await fetch(`${service.baseUrl}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'Conformance', redirect_uris: [redirectUri] }),
  });
  expect(answer.status).toBe(201);
  const { client_id } = (await answer.json()) as { client_id: string };
  return client_id;
}

/** In a browser that was never here: our question, the provider's login, and the tool's page. */
async function logIn(url: string, redirectUri: string): Promise<void> {
  const page = await browser.newPage();
  await page.goto(url);
  expect(new URL(page.url()).origin).toBe(service.baseUrl);
  await approve(page);
  await page.waitForURL(`${service.issuer}/**`);
  await page.getByLabel('Name').fill('ada');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.waitForURL(`${redirectUri}?**`);
  await page.close();
}

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { cp, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { inject } from 'light-my-request';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Reply } from '../../src/http/endpoint/message.ts';
import type { Site } from '../../src/http/server/router.ts';
import { createHttpServer } from '../../src/http/server/server.ts';
import { createSite } from '../../src/pages/site.ts';
import { noMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { createAdmittingLimiter } from '../support/gateway/limit-check.ts';
import { collectLog } from '../support/gateway/log.ts';
import { openTestRuntime } from '../support/gateway/runtime.ts';
import { DOCUMENTATION } from '../support/site/documentation.ts';

const PROVIDERS = [
  'entra',
  'okta',
  'auth0',
  'keycloak',
  'google',
  'cognito',
  'authentik',
  'dex',
  'hydra',
];
/** They call the gateway. */
const APPS = ['/', '/playground', '/playground/callback', '/admin'];
const PAGES = [
  ...APPS,
  '/connect',
  '/front-page',
  '/guide',
  '/clients',
  '/reference',
  '/errors',
  '/settings',
  '/modes',
  '/threat-model',
  '/benchmarks',
  '/scaling',
  '/providers',
  '/upstreams',
  '/authors',
  '/rules',
  '/protocol',
  '/operations',
  '/architecture',
  '/deploy',
  '/doctor',
  ...PROVIDERS.map((name) => `/provider-${name}`),
  ...DOCUMENTATION.filter((path) => /^\/(reference|operations)\//.test(path)),
];
const root = new URL('../../', import.meta.url);

/** What is read in the repository only. */
const PROJECT_PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'CHANGELOG.md',
  ...readdirSync(new URL('docs/decisions/', root)).map((name) => `docs/decisions/${name}`),
];

/** As the common forges make them. */
const anchorsOf = (markdown: string): string[] =>
  [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );

const examples = new URL('docs/examples/', root);
/** Examples that have a page of their own. */
const OWN_PAGES: Readonly<Record<string, string>> = {
  'testing.ts': '/testing',
  'sampling.ts': '/sampling',
  'task.ts': '/tasks',
  'skill.ts': '/skills',
};
const EXAMPLES = readdirSync(examples).filter((name) => name.endsWith('.ts'));

let folder: string;
let site: Site;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-site-'));
  await cp(new URL('dist/site/', root), folder, { recursive: true });
  await writeFile(join(folder, 'notes.txt'), 'not for the public');
  site = open('http://localhost:3000');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const open = (baseUrl: string) =>
  createSite(collectLog(), { baseUrl, hasOperatorsPage: true }, pathToFileURL(`${folder}/`));

const textOf = (reply: Reply | undefined): string => Buffer.from(reply?.body ?? '').toString();

const UNFILLED = /\/fill-in-base-path|fill-in-base-url|fill-in-version/;

const policyOf = (reply: Reply | undefined): readonly string[] =>
  reply?.headers?.['Content-Security-Policy']?.split('; ') ?? [];

const hashOf = (script: string): string =>
  `'sha256-${createHash('sha256').update(script).digest('base64')}'`;

const CHARACTERS: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', amp: '&' };
const unescaped = (html: string): string =>
  html
    .replace(/&#x([0-9a-f]+);/gi, (_, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    )
    .replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))
    .replace(/&(lt|gt|quot|amp);/g, (_, name: string) => CHARACTERS[name] ?? '');

describe('documentation pages', () => {
  test.each(PAGES)('§4.1 GET %s is a page, which loads nothing foreign', (path) => {
    const page = site.findPage(path);
    expect(page).toMatchObject({
      status: 200,
      headers: {
        'Content-Type': 'text/html; charset=utf-8',
        'Cache-Control': 'public, max-age=300',
      },
    });
    const html = textOf(page);
    expect(html).toMatch(/^<!doctype html>\n<html lang="en"/i);
    expect(html.match(/<h1/g)).toHaveLength(1);
    expect(html).not.toMatch(/<style|<iframe|\son\w+=|src="http|@import/i);
    expect(html).not.toMatch(/(?<!\$)\{(base_url|base_path|version)\}/);
    expect(html).not.toMatch(UNFILLED);
  });

  test.each([
    { name: 'without a path', baseUrl: 'https://mcp.example.com' },
    { name: 'with a path', baseUrl: 'https://example.com/tools/mcp-gateway' },
  ])(
    '§4.12 the policy of every page has the hash of each of its inline scripts, BASE_URL $name',
    async ({ baseUrl }) => {
      const served = open(baseUrl);
      for (const path of PAGES) {
        const page = served.findPage(path);
        const inline = [...textOf(page).matchAll(/<script([^>]*)>([\s\S]*?)<\/script>/g)].filter(
          ([, attributes = '']) => !attributes.includes(' src='),
        );
        expect(inline.length).toBeGreaterThan(0);
        expect(policyOf(page)).toEqual([
          "default-src 'none'",
          `script-src 'self' ${inline.map(([, , script = '']) => hashOf(script)).join(' ')}`,
          "style-src 'self'",
          ...(APPS.includes(path)
            ? ["connect-src 'self'", "frame-src 'self'"]
            : ["style-src-attr 'unsafe-inline'"]),
          "img-src 'self' data:",
          "base-uri 'none'",
          "form-action 'none'",
          "frame-ancestors 'none'",
        ]);
      }
    },
  );

  test('§4.12 a logo from elsewhere is allowed in the pages that show it, and nothing else is', async () => {
    const shown = createSite(
      collectLog(),
      { baseUrl: 'http://localhost:3000', logoOrigin: 'https://cdn.example' },
      pathToFileURL(`${folder}/`),
    );
    expect(policyOf(shown.findPage('/'))).toContain("img-src 'self' data: https://cdn.example");
    expect(policyOf(shown.findPage('/clients'))).toContain("img-src 'self' data:");
  });

  test.each(APPS)('§4.12 %s has no style attribute, which its policy would forbid', (path) => {
    expect(textOf(site.findPage(path))).not.toMatch(/ style="/);
  });

  test.each(PAGES)('§4.1 every link of %s leads somewhere', (path) => {
    const served = ['/health', '/health/ready'];
    const here = new URL(path, 'http://localhost:3000');
    for (const [, href = ''] of textOf(site.findPage(path)).matchAll(/(?:href|src)="([^"]*)"/g)) {
      const { origin, pathname, hash } = new URL(unescaped(href), here);
      if (origin !== here.origin) continue;
      const there = site.findPage(pathname);
      expect(there !== undefined || served.includes(pathname), `${path} → ${href}`).toBe(true);
      const id = decodeURIComponent(hash.slice(1));
      if (id) expect(textOf(there), `${path} → ${href}`).toContain(`id="${id}"`);
    }
  });

  test.each(PROJECT_PAGES)(
    '§4.1 every link of %s leads to a file, and to a heading of it',
    (name) => {
      const text = readFileSync(new URL(name, root), 'utf8');
      const links = [...text.matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)].map(
        ([, to = '']) => to,
      );
      const broken = links.filter((link) => {
        const target = new URL(link, new URL(name, root));
        if (!existsSync(target)) return true;
        const heading = target.hash.slice(1);
        target.hash = '';
        return heading !== '' && !anchorsOf(readFileSync(target, 'utf8')).includes(heading);
      });
      expect(broken).toEqual([]);
    },
  );

  test.each(EXAMPLES)('§4.1 the page shows the code of %s as its file has it', (name) => {
    const page = OWN_PAGES[name] ?? '/authors';
    const blocks = [...textOf(site.findPage(page)).matchAll(/<pre[^>]*>(.*?)<\/pre>/gs)];
    const file = readFileSync(new URL(name, examples), 'utf8');
    const shown = blocks.map(([, code = '']) => unescaped(code.replace(/<[^>]*>/g, '')));
    expect(shown).toContain(file.trimEnd());
  });

  test('§4.1 the front page names the address to give to a client', async () => {
    const other = open('https://mcp.example.com');
    expect(textOf(other.findPage('/'))).toContain('https://mcp.example.com/mcp<');
  });

  test('§4.1 /assets/** are served with their types', () => {
    const assets = [...textOf(site.findPage('/')).matchAll(/(?:href|src)="(\/assets\/[^"]*)"/g)];
    const types = assets.map(([, path = '']) => site.findPage(path)?.headers?.['Content-Type']);
    expect(new Set(types)).toEqual(
      new Set(['text/css; charset=utf-8', 'text/javascript; charset=utf-8', 'image/svg+xml']),
    );
    expect(site.findPage('/assets/icon.svg')?.status).toBe(200);
  });

  test('§4.1 a screenshot is an image, which is kept for ever', () => {
    const [, src = ''] =
      /<img src="([^"]*\.webp)"/.exec(textOf(site.findPage('/front-page'))) ?? [];
    const reply = site.findPage(src);
    expect(reply?.headers).toMatchObject({
      'Content-Type': 'image/webp',
      'Cache-Control': 'public, max-age=31536000, immutable',
    });
    expect(Buffer.from(reply?.body ?? '').toString('latin1')).toMatch(/^RIFF.{4}WEBP/s);
  });

  test('§4.1 /favicon.ico is an icon, which every page names', () => {
    const icon = site.findPage('/favicon.ico');
    expect(icon).toMatchObject({ status: 200, headers: { 'Content-Type': 'image/x-icon' } });
    // Reserved, kind (1: icon), how many images; each of these begins as a PNG does.
    const bytes = Buffer.from(icon?.body ?? '');
    expect([...bytes.subarray(0, 6)]).toEqual([0, 0, 1, 0, 2, 0]);
    for (const entry of [6, 22]) {
      const [size, start] = [bytes.readUInt32LE(entry + 8), bytes.readUInt32LE(entry + 12)];
      expect(bytes.toString('latin1', start + 1, start + 4)).toBe('PNG');
      expect(start + size).toBeLessThanOrEqual(bytes.length);
    }
    for (const path of PAGES) {
      expect(textOf(site.findPage(path))).toContain(
        '<link rel="icon" sizes="32x32" href="/favicon.ico">',
      );
    }
  });

  test('§4.1 links, and what scripts load, stay below the path of BASE_URL', async () => {
    const below = open('https://example.com/tools/mcp-gateway');
    const html = textOf(below.findPage('/'));
    expect(html).toContain('href="/tools/mcp-gateway/clients"');
    expect(html).not.toMatch(/(?:href|src)="\/(?!tools\/mcp-gateway\/)/);
    const scripts = [...html.matchAll(/"\/tools\/mcp-gateway(\/assets\/[^"]*\.js)"/g)];
    expect(scripts.length).toBeGreaterThan(2);
    const code = scripts.map(([, path = '']) => textOf(below.findPage(path)));
    for (const file of code) expect(file).not.toMatch(UNFILLED);
    expect(code.some((file) => file.includes('"/tools/mcp-gateway/"'))).toBe(true);
  });

  test('§4.1 BASE_URL is no code in pages, nor in their scripts', async () => {
    const odd = open("https://example.com/'><script>alert(1)</script>`${a}&lt");
    const html = textOf(odd.findPage('/clients'));
    expect(html).toContain(
      'https://example.com/%27%3E%3Cscript%3Ealert(1)%3C/script%3E%60$%7Ba%7D%26lt',
    );
    expect(html).not.toContain('<script>');
    const [, script = ''] = /"[^"]*(\/assets\/clients\.md[^"]*)\.lean\.js"/.exec(html) ?? [];
    const code = textOf(odd.findPage(`${script}.js`));
    expect(code).toContain('https://example.com/%27%3E%3Cscript%3Ealert(1)');
    expect(code).not.toContain('<script>');
  });

  test('§4.1 a page that the caller has is answered with 304', () => {
    const etag = site.findPage('/')?.headers?.ETag ?? '';
    expect(etag).toMatch(/^W\/"[\w-]{27}"$/);
    for (const known of [etag, etag.slice(2), `"other", ${etag}`, '*']) {
      const reply = site.findPage('/', known);
      expect(reply).toMatchObject({ status: 304, headers: { ETag: etag } });
      expect(reply?.body).toBeUndefined();
    }
    expect(site.findPage('/', '"other"')?.status).toBe(200);
    expect(site.findPage('/settings')?.headers?.ETag).not.toBe(etag);
  });

  test('§4.1 a file whose name has the hash of all that is in it is kept for ever, and no other is', async () => {
    const below = open('https://example.com/tools');
    const immutable = 'public, max-age=31536000, immutable';
    const names = readdirSync(join(folder, 'assets'), { recursive: true, encoding: 'utf8' });
    const kept = names.filter((name) => {
      const [here, there] = [site, below].map((one) => one.findPage(`/assets/${name}`));
      if (here?.headers?.['Cache-Control'] !== immutable) return false;
      expect(textOf(there), name).toBe(textOf(here));
      const known = site.findPage(`/assets/${name}`, here.headers.ETag);
      expect(known).toMatchObject({ status: 304, headers: { 'Cache-Control': immutable } });
      return true;
    });
    expect(kept.some((name) => name.startsWith('style.'))).toBe(true);
    expect(kept).not.toContain('icon.svg');
  });

  test.each([
    '/index',
    '/index.html',
    '/404',
    '/settings/',
    '/Settings',
    '/%73ettings',
    '//settings',
    '/assets',
    '/assets/../settings',
    '/../package.json',
    '/..%2fpackage.json',
    '/notes.txt',
    '/hashmap.json',
    '/notes',
    '/__proto__',
    '',
  ])('§4.1 %j is no page', (path) => {
    expect(site.findPage(path)).toBeUndefined();
  });

  test('§4.1 a page that another build has taken away is none, and one that was asked for before is served on', async () => {
    const file = join(folder, 'settings.html');
    const asked = open('http://localhost:3000');
    const unasked = open('http://localhost:3000');
    expect(asked.findPage('/settings')?.status).toBe(200);
    await rename(file, `${file}.old`);
    try {
      expect(asked.findPage('/settings')?.status).toBe(200);
      expect(unasked.findPage('/settings')).toBeUndefined();
      expect(unasked.findPage('/')?.status).toBe(200);
    } finally {
      await rename(`${file}.old`, file);
    }
    expect(unasked.findPage('/settings')?.status).toBe(200);
  });

  test('§4.1 a page that could not be read once is served as soon as it can be', async () => {
    const file = join(folder, 'settings.html');
    const asked = open('http://localhost:3000');
    await rename(file, `${file}.old`);
    try {
      await mkdir(file);
      expect(() => asked.findPage('/settings')).toThrow('EISDIR');
      await rm(file, { recursive: true });
    } finally {
      await rename(`${file}.old`, file);
    }
    expect(asked.findPage('/settings')?.status).toBe(200);
  });

  test('§4.1 without built pages the service runs, and says once how to make them', async () => {
    const { log, lines } = collectLog();
    const bare = createSite(
      { log },
      { baseUrl: 'http://localhost:3000' },
      pathToFileURL(`${folder}/nowhere/`),
    );
    expect(bare.findPage('/')).toBeUndefined();
    expect(bare.getNotFoundPage()).toBeUndefined();
    expect(lines).toEqual([
      expect.objectContaining({ level: 'info', msg: expect.stringContaining('npm run build') }),
    ]);
  });
});

describe('documentation pages over HTTP', () => {
  async function ask(
    method: 'GET' | 'HEAD' | 'POST',
    path: string,
    headers: Record<string, string> = {},
  ) {
    const routes: string[] = [];
    const metrics = {
      ...noMetrics,
      recordHttpRequest: (_method: string, route: string) => void routes.push(route),
    };
    const { handler } = createHttpServer(openTestRuntime({ metrics }), {
      endpoints: [],
      site,
      checks: { authenticate: async () => undefined, limiter: createAdmittingLimiter() },
      corsHeaders: { request: [], requestPrefix: undefined, response: [] },
    });
    const answer = await inject(handler, {
      method,
      url: path,
      headers: { host: 'localhost', ...headers },
    });
    const { statusCode: status, headers: sent, rawPayload: body } = answer;
    return { reply: { status, headers: sent, body }, route: routes[0] };
  }

  test('§4.12 a page carries the security headers', async () => {
    const { reply, route } = await ask('GET', '/settings');
    expect(reply).toMatchObject({
      status: 200,
      headers: { 'x-frame-options': 'DENY', vary: 'Origin, Accept-Encoding' },
    });
    expect(route).toBe('/**');
  });

  test.each([
    { accepted: 'gzip, deflate, br, zstd', coding: 'br', open: brotliDecompressSync },
    { accepted: 'br;q=0, GZIP;q=0.5', coding: 'gzip', open: gunzipSync },
    { accepted: 'zstd, identity', coding: undefined, open: (body: Uint8Array) => body },
    { accepted: undefined, coding: undefined, open: (body: Uint8Array) => body },
  ])(
    '§4.1 a page in the coding that the caller accepts ($accepted)',
    async ({ accepted, coding, open: decode }) => {
      const headers = accepted === undefined ? {} : { 'accept-encoding': accepted };
      const plain = site.findPage('/settings')?.body as Uint8Array;
      for (const method of ['GET', 'HEAD'] as const) {
        const { reply } = await ask(method, '/settings', headers);
        expect(reply.headers['content-encoding']).toBe(coding);
        expect(reply.headers.vary).toBe('Origin, Accept-Encoding');
        const { body } = reply;
        if (method === 'HEAD') continue;
        expect(Buffer.from(decode(body)).equals(plain)).toBe(true);
        if (coding !== undefined) expect(body.byteLength * 3).toBeLessThan(plain.byteLength);
      }
      const { reply: first } = await ask('GET', '/settings', headers);
      const known = { ...headers, 'if-none-match': first.headers.etag ?? '' };
      const { reply } = await ask('GET', '/settings', known);
      expect(reply).toMatchObject({ status: 304, headers: { vary: 'Origin, Accept-Encoding' } });
      expect(reply.headers).not.toHaveProperty('content-encoding');
    },
  );

  test('§4.1 what is no text, or small, is sent as it is', async () => {
    const { reply } = await ask('GET', '/favicon.ico', { 'accept-encoding': 'br' });
    expect(reply.headers).not.toHaveProperty('content-encoding');
    const page = await ask('GET', '/nowhere', { accept: 'text/html', 'accept-encoding': 'br' });
    expect(page.reply).toMatchObject({ status: 404, headers: { 'content-encoding': 'br' } });
  });

  test('§4.1 HEAD is GET; any other method is 405 with Allow', async () => {
    expect((await ask('HEAD', '/')).reply.status).toBe(200);
    const { reply } = await ask('POST', '/');
    expect(reply).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
  });

  test('§7.5 an unknown path is a page for browsers and JSON for programs', async () => {
    const browser = await ask('GET', '/nowhere', { accept: 'text/html,*/*;q=0.8' });
    expect(browser.reply.status).toBe(404);
    expect(browser.reply.headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': expect.stringContaining("script-src 'self' 'sha256-"),
      vary: 'Origin, Accept, Accept-Encoding',
    });
    expect(browser.reply.headers).not.toHaveProperty('etag');
    expect(browser.reply.body.toString()).toContain('Page not found');
    expect(browser.reply.body.toString()).not.toContain('nowhere');
    const program = await ask('GET', '/nowhere', { accept: '*/*' });
    expect(program.reply).toMatchObject({
      status: 404,
      headers: { 'content-type': 'application/json' },
    });
    expect(JSON.parse(program.reply.body.toString()).error).toMatchObject({
      code: -32000,
      message: 'Not Found',
    });
    expect(browser.route).toBe('unmatched');
  });
});

describe('metadata documents', () => {
  const documents = ['.', 'docs', 'docs/decisions', 'docs/operations', 'docs/reference'].flatMap(
    (at) =>
      readdirSync(new URL(`${at}/`, root))
        .filter((name) => name.endsWith('.md'))
        .map((name) => `${at}/${name}`),
  );

  test.each(documents)('§4.1 every link of %s leads to a file that is there', (document) => {
    const here = new URL(document, root);
    const text = readFileSync(here, 'utf8').replace(/```[\s\S]*?```/g, '');
    for (const [, href = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^(https?:|#)/.test(href)) continue;
      const target = new URL(href, here);
      expect(existsSync(new URL(target.pathname, target)), `${document} → ${href}`).toBe(true);
    }
  });
});

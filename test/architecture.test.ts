// Checks the layout that docs/architecture.md draws.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { expect, test } from 'vitest';

interface Import {
  readonly from: string;
  /** A file below src, or the name of a package. */
  readonly to: string;
  readonly isType: boolean;
  readonly isPackage: boolean;
}

const src = new URL('../src/', import.meta.url);
const files = new Map(
  readdirSync(src, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => name.endsWith('.ts'))
    .map((name) => [name, codeOf(readFileSync(new URL(name, src), 'utf8'))]),
);
const imports = [...files].flatMap(([name, code]) => importsOf(name, code));

/** The kernel, from the ground up: each room may import from those before it. */
const KERNEL: readonly string[] = [
  'platform',
  'config',
  'errors',
  'telemetry',
  'store',
  'runtime',
  'http',
  'mcp',
];

/** Rooms of features stand beside each other on the kernel; none imports another. `src/gateway/gateway.ts` lists the features. */
const FEATURE_ROOMS: readonly string[] = [
  'logins',
  'connections',
  'control',
  'lock',
  'catalog',
  'servers',
  'pages',
];

/** Above them, from the ground up; below cli, where commands have rooms of their own, a room is a folder there. */
const ABOVE: readonly string[] = [
  'define',
  'built-in',
  'gateway',
  'testing',
  'cli/command-line',
  'cli/setup',
  'cli/dev-provider',
  'cli/serve',
  'cli/dev',
  'cli/rules',
  'cli/doctor',
  'cli/init',
  'cli',
];
const ROOMS: readonly string[] = [...KERNEL, ...FEATURE_ROOMS, ...ABOVE];

/** How many rooms one may import from beside the kernel, and those that put others together. */
const MOST_NEIGHBOURS = 12;
const COMPOSITION_ROOTS: ReadonlySet<string> = new Set(['gateway', 'cli']);

/** Where a package of the runtime, or a module of Node that does I/O, may be used as a value. */
const PACKAGE_FOLDERS: Readonly<Record<string, RegExp>> = {
  '@bufbuild/cel': /^control\/rules\/when\//,
  '@bufbuild/re2': /^(control\/rules\/when\/|mcp\/catalog\/foreign-schema\.ts$)/,
  '@clack/prompts': /^cli\/init\/ask\.ts$/,
  commander: /^cli\/(command-line\/|run-postern\.ts$)/,
  ajv: /^mcp\/(catalog\/define\/compile-schema|catalog\/foreign-schema|calls\/client-answers)\.ts$/,
  'json-schema-to-ts': /^mcp\/catalog\/client-requests\.ts$/,
  ioredis: /^store\/redis\//,
  lmdb: /^store\/embedded\//,
  'lru-cache': /^platform\/bounded-map\.ts$/,
  'jsonc-parser': /^config\/file\/syntax\/read-syntax\.ts$/,
  yaml: /^config\/file\/syntax\/read-syntax\.ts$/,
  pino: /^platform\/log\.ts$/,
  'prom-client': /^telemetry\/metrics\//,
  'oidc-provider': /^cli\//,
  '@opentelemetry/api': /^telemetry\/tracing\//,
  '@opentelemetry/context-async-hooks': /^telemetry\/tracing\//,
  '@opentelemetry/exporter-trace-otlp-http': /^telemetry\/tracing\//,
  '@opentelemetry/exporter-trace-otlp-proto': /^telemetry\/tracing\//,
  '@opentelemetry/resources': /^telemetry\/tracing\//,
  '@opentelemetry/sdk-trace': /^telemetry\/tracing\//,
  tokenx: /^catalog\/search\/search-tools\.ts$/,
  'node:http': /^(platform\/outbound\/proxy-choice\.ts$|cli\/)/,
  'node:https': /^(platform\/outbound\/(public-network|proxy-choice)\.ts$|cli\/)/,
  'node:child_process': /^(servers\/stdio\/child\.ts$|cli\/)/,
  // For nextTick: when all microtasks have run; for signals to groups of processes.
  'node:process': /^(http\/server\/overload\.ts$|servers\/stdio\/child\.ts$|cli\/)/,
};

/** What each call makes, and what stands for each connection and stream: closures would be most of what they take. */
const WITH_CLASSES = [
  'http/(server/(client-connections|incoming-exchange|send-stream)|limits/limiter).ts',
  'mcp/calls/(call|context).ts',
  'mcp/session/(kept-streams?|session-era|session-streams).ts',
  'mcp/streaming/(event-queue|notification-streams|response-stream).ts',
  'platform/(bounded-map|cancellation|clock|exact-json|json|pieces).ts',
  'platform/http-client/(content-coding|http-pool|read-response).ts',
  'mcp/protocol/fit.ts',
  'mcp/upstream/wrap-upstream.ts',
  'catalog/(approved-content|caller-lists|list-cache|plan|resolve-target|server-lists|upstream-catalogs).ts',
  'servers/http/(event-stream|exchange|server-call|session-cookies|session-protocol|sessions|stateless-protocol).ts',
  'servers/relay/(relay-call|suspended/outcome-records).ts',
  'servers/(transport/.*|stdio/child.ts)',
];

/** What one place only may say. */
const CONFINED = [
  // The owner of a file is compared with the user of this process; the version of Node.js is told.
  {
    what: 'process',
    said: /\bprocess(\.(?!getBuiltinModule\b)[a-z]|\[)/,
    where: /^(cli\/|store\/seal\/secrets\.ts$|platform\/own-files\.ts$)/,
  },
  { what: 'getBuiltinModule', said: /\bgetBuiltinModule\b/, where: /^http\/server\/server\.ts$/ },
  { what: 'Date.now', said: /\bDate\.now\b/, where: /^platform\/clock\.ts$/ },
  { what: 'new Date()', said: /\bnew Date\(\)/, where: /^platform\/clock\.ts$/ },
  { what: 'console', said: /\bconsole\./, where: /^cli\// },
  // One line, guarded by the tool's validator.
  {
    what: 'any',
    said: /(:|\bas|<|,)\s*any(?=\s*[,;)>=[\]|&}])/,
    where: /^mcp\/catalog\/define\/tool\.ts$/,
  },
  // What is made for each call has none: V8 makes the pair of an accessor in the old generation, from where it keeps the
  // whole call alive until the next full collection.
  {
    what: 'an accessor',
    said: /^\s+[gs]et \w+\(/m,
    where:
      /^(?!http\/(server|limits)\/|telemetry\/tracing\/|platform\/memory\/|servers\/(relay\/|transport\/(?!server-questions)|http\/(event-stream|server-call|session-protocol|http-connection|exchange|sse-protocol)\.ts))/,
  },
  {
    what: 'a class that is no error',
    said: /\bclass \w+(<\w+>)? (?!extends \w*Error\b)/,
    where: new RegExp(`^(${WITH_CLASSES.join('|')})$`),
  },
  { what: 'a default export', said: /^export default\b/m, where: /^$/ },
];

/** Used by scripts alone. */
const USED_OUTSIDE = [
  { file: 'gateway/configuration/gateway-file.ts', name: 'createGatewayFileSchema' },
  { file: 'platform/scan/scan-json.ts', name: 'SCAN_BOUNDS' },
];

/** Casts other than `as const`, and why the compiler cannot know it. */
const CASTS: Readonly<Record<string, { readonly count: number; readonly why: string }>> = {
  'connections/connection-record.ts': { count: 1, why: 'a record that this code sealed' },
  'mcp/calls/client-answers.ts': { count: 1, why: 'each answer fits its request' },
  'mcp/catalog/define/prompt.ts': { count: 1, why: 'the arguments were checked before' },
  'mcp/catalog/define/tool.ts': { count: 3, why: 'the result was checked by a schema' },
  'platform/load-package.ts': {
    count: 1,
    why: 'its caller names the package together with its type',
  },
  'store/records.ts': { count: 1, why: 'a record that this code sealed' },
};

test('§1 architecture: there is something to look at', () => {
  expect(files.size).toBeGreaterThan(50);
  expect(imports.length).toBeGreaterThan(200);
});

test('§1 architecture: every file lies in a room', () => {
  expect([...files.keys()].filter((name) => !ROOMS.includes(roomOf(name)))).toEqual([]);
  expect(ROOMS.filter((room) => ![...files.keys()].some((name) => roomOf(name) === room))).toEqual(
    [],
  );
});

test('§1 architecture: imports point down, from room to room', () => {
  const floor = (name: string) => ROOMS.indexOf(roomOf(name));
  const upward = imports.filter(({ from, to, isPackage }) => !isPackage && floor(to) > floor(from));
  expect(upward.map(arrow)).toEqual([]);
});

test('§1 architecture: no feature imports another', () => {
  const isFeature = (name: string) => FEATURE_ROOMS.includes(roomOf(name));
  const across = imports.filter(
    ({ from, to, isPackage }) =>
      !isPackage && isFeature(from) && isFeature(to) && roomOf(from) !== roomOf(to),
  );
  expect(across.map(arrow)).toEqual([]);
});

test('§1 architecture: no exported name is declared in two files', () => {
  const declared = new Map<string, string[]>();
  for (const [name, code] of files) {
    for (const [, exported = ''] of code.matchAll(
      /^export (?:declare )?(?:async )?(?:abstract )?(?:const|let|function\*?|class|interface|type|enum) (\w+)/gm,
    )) {
      const others = declared.get(exported) ?? [];
      if (!others.includes(name)) declared.set(exported, [...others, name]);
    }
  }
  expect(Object.fromEntries([...declared].filter(([, where]) => where.length > 1))).toEqual({});
});

/** In the file of its table, and where it is defined alone it is in none. */
test('§1 architecture: whatever is defined as one of a kind has its row', () => {
  const defined = [...files].flatMap(([file, code]) =>
    [...code.matchAll(/^export const (\w+)\b[^=]*= define[A-Z]\w*[<(]/gm)].map(([, name = '']) => ({
      file,
      name,
    })),
  );
  const hasRow = ({ file, name }: (typeof defined)[number]) =>
    [...files].some(([other, code]) => other !== file && new RegExp(`\\b${name}\\b`).test(code));
  expect(defined.length).toBeGreaterThan(50);
  expect(defined.filter((one) => !hasRow(one))).toEqual([]);
});

/** A panel, an endpoint or a policy without its row, too, which no `define…` makes. */
test('§1 architecture: whatever is exported as a value is used in src', () => {
  const counts = new Map<string, number>();
  for (const code of files.values())
    for (const [word] of code.matchAll(/\w+/g)) counts.set(word, (counts.get(word) ?? 0) + 1);
  const exported = [...files].flatMap(([file, code]) =>
    [...code.matchAll(/^export (?:async )?(?:const|function\*?|class) (\w+)/gm)].map(
      ([, name = '']) => ({ file, name }),
    ),
  );
  expect(exported.length).toBeGreaterThan(1000);
  const unused = exported.filter(({ name }) => counts.get(name) === 1);
  expect(unused).toEqual(USED_OUTSIDE);
});

test('§1 architecture: no room knows more than a dozen others', () => {
  const neighbours = new Map<string, Set<string>>();
  for (const { from, to, isPackage } of imports) {
    if (isPackage || roomOf(from) === roomOf(to) || KERNEL.includes(roomOf(to))) continue;
    neighbours.set(roomOf(from), (neighbours.get(roomOf(from)) ?? new Set()).add(roomOf(to)));
  }
  const crowded = [...neighbours].filter(
    ([room, others]) => others.size > MOST_NEIGHBOURS && !COMPOSITION_ROOTS.has(room),
  );
  expect(crowded).toEqual([]);
});

test('§1 architecture: no import leads back to where it came from', () => {
  const edges = new Map<string, string[]>();
  for (const { from, to, isPackage } of imports) {
    if (!isPackage) edges.set(from, [...(edges.get(from) ?? []), to]);
  }
  expect(cycleIn(edges)).toBeUndefined();
});

test('§1 architecture: every imported file is there', () => {
  const missing = imports.filter(({ to, isPackage }) => !isPackage && !files.has(to));
  expect(missing.map(arrow)).toEqual([]);
});

test.each(Object.entries(PACKAGE_FOLDERS))(
  '§1 architecture: %s is used in one place only',
  (name, allowed) => {
    const elsewhere = imports.filter(
      ({ from, to, isType }) => to === name && !isType && !allowed.test(from),
    );
    expect(elsewhere.map(arrow)).toEqual([]);
  },
);

test('§1 architecture: every package is one that the project names', () => {
  const named = new Set(Object.keys(PACKAGE_FOLDERS));
  const unknown = imports.filter(
    ({ to, isPackage }) => isPackage && !to.startsWith('node:') && !named.has(to),
  );
  expect(unknown.map(arrow)).toEqual([]);
});

test.each(CONFINED)('§1 architecture: $what stands in its place only', ({ said, where }) => {
  const names = [...files].filter(([name, code]) => said.test(code) && !where.test(name));
  expect(names.map(([name]) => name)).toEqual([]);
});

const plan = readFileSync(new URL('../docs/architecture.md', import.meta.url), 'utf8');
const roomNames = [...new Set([...files.keys()].map((name) => name.split('/')[0] ?? ''))].filter(
  (name) => !name.endsWith('.ts'),
);

test('§1 architecture: the plan fits on two screens, and names every room', () => {
  expect(plan.split('\n').length).toBeLessThanOrEqual(110);
  expect(roomNames.filter((room) => !plan.includes(`\`${room}\``))).toEqual([]);
});

test.each(roomNames.filter((room) => room !== 'built-in' && room !== 'testing'))(
  '§1 architecture: %s has a page beside its code, which names each of its folders',
  (room) => {
    const page = readPage(room);
    const folders = [...files.keys()]
      .filter((name) => name.startsWith(`${room}/`))
      .map((name) => posix.dirname(name).slice(room.length + 1))
      .filter((folder) => folder !== '');
    expect([...new Set(folders)].filter((folder) => !page.includes(`${folder}/`))).toEqual([]);
    expect(page).toMatch(/^## .*add/im);
  },
);

test('§1 architecture: every file that the plan or the page of a room names exists', () => {
  const pages = [plan, ...roomNames.map(readPage)].join('\n');
  const named = [...pages.matchAll(/(?<![\w*/.-])[\w*/.-]+\.ts\b/g)].map(([name]) => name);
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((name) => !isFile(name))).toEqual([]);
});

test.each([
  ['A tool call', 'mcp'],
  ['A token request', 'logins'],
])('§1 architecture: %s goes through few files, each once', (walk, room) => {
  const [, list = ''] =
    new RegExp(`^## ${walk}, file by file\\n(.*?)^## `, 'ms').exec(`${readPage(room)}\n## `) ?? [];
  const steps = [...list.matchAll(/^\d+\. `([\w/.-]+)`/gm)].map(([, name = '']) => name);
  expect(steps.length).toBeGreaterThan(15);
  expect(steps.length).toBeLessThanOrEqual(25);
  expect(new Set(steps).size).toBe(steps.length);
  expect(steps.filter((name) => !files.has(name))).toEqual([]);
});

/** The page of a room; empty where it has none. */
function readPage(room: string): string {
  const page = new URL(`${room}/README.md`, src);
  return existsSync(page) ? readFileSync(page, 'utf8') : '';
}

/** In the repository, or in any folder of src by the end of its path; `*` is any text. */
function isFile(name: string): boolean {
  if (existsSync(new URL(`../${name}`, import.meta.url))) return true;
  const path = name.replaceAll('.', '\\.').replaceAll('*', '[\\w-]*');
  return [...files.keys()].some((file) => new RegExp(`(^|/)${path}$`).test(file));
}

test('§1 architecture: what a comment refers to is in the repository', () => {
  const root = new URL('../', import.meta.url);
  const sources = ['src/', 'test/', 'scripts/', 'bench/'].flatMap((folder) =>
    readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(ts|mjs)$/.test(name))
      .map((name) => folder + name.replaceAll('\\', '/')),
  );
  // A numbered text that is not here; docs/reference.md has the chapters (§), docs/decisions the records.
  const foreign = sources.filter((name) =>
    /\bdecisions? \d/i.test(readFileSync(new URL(name, root), 'utf8')),
  );
  expect(foreign).toEqual([]);
});

test('§1 architecture: the only cast is `as const`, but for those that have a reason', () => {
  const counts = [...files].map(([name, code]) => [name, castsIn(code).length] as const);
  const allowed = Object.entries(CASTS).map(([name, { count }]) => [name, count] as const);
  expect(Object.fromEntries(counts.filter(([, count]) => count > 0))).toEqual(
    Object.fromEntries(allowed),
  );
});

/** What is no code: comments, texts, regular expressions. */
const TEXTS =
  /\/\*[\s\S]*?\*\/|\/\/[^\n]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`|(?<=[(=,:[!&|?{};>]\s*|return\s)\/(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/g;

/** `value as Type`; names of imports and of mapped types may be changed by `as`. */
function castsIn(code: string): readonly string[] {
  const bare = code
    .replace(TEXTS, "''")
    .replace(/\b(import|export)\b[^;'()]*\bfrom\b/g, '')
    .replace(/\[\w+ in .* as /g, '[');
  return bare.match(/\bas\s+(?!const\b)\S+/g) ?? [];
}

function roomOf(name: string): string {
  if (!name.includes('/')) return name === 'index.ts' ? 'gateway' : name.replace(/\.ts$/, '');
  const folders = posix.dirname(name).split('/');
  return folders.slice(0, folders[0] === 'cli' ? 2 : 1).join('/');
}

function arrow({ from, to }: Import): string {
  return `${from} → ${to}`;
}

function importsOf(from: string, code: string): Import[] {
  const written = code.matchAll(
    /\b(?:import|export)\s+(type\s)?(?:[\w*{][^'";]*?\sfrom\s+)?'([^']+)'|\bimport\('([^']+)'\)/g,
  );
  return [...written].map(([, type, named = '', dynamic]) => {
    // The package itself, as its authors write it.
    const target = (dynamic ?? named).replace(
      /^postern\/define$/,
      posix.relative(posix.dirname(from), 'define.ts'),
    );
    const isPackage = !target.startsWith('.');
    const to = isPackage ? packageOf(target) : posix.join(posix.dirname(from), target);
    return { from, to, isType: type !== undefined, isPackage };
  });
}

/** `@scope/name` of `@scope/name/path`; what Node has keeps its prefix. */
function packageOf(target: string): string {
  const parts = target.split('/');
  if (target.startsWith('node:')) return target;
  return parts.slice(0, target.startsWith('@') ? 2 : 1).join('/');
}

/** Without comments: they may speak of anything. */
function codeOf(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1');
}

function cycleIn(edges: ReadonlyMap<string, readonly string[]>): string | undefined {
  const done = new Set<string>();
  const visit = (at: string, way: readonly string[]): string | undefined => {
    if (way.includes(at)) return [...way.slice(way.indexOf(at)), at].join(' → ');
    if (done.has(at)) return undefined;
    for (const next of edges.get(at) ?? []) {
      const found = visit(next, [...way, at]);
      if (found) return found;
    }
    done.add(at);
    return undefined;
  };
  for (const start of edges.keys()) {
    const found = visit(start, []);
    if (found) return found;
  }
  return undefined;
}

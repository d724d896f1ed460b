// §4.1: the documentation site, from the Markdown pages that also read well where they lie.
// `{base_url}`, `{base_path}` and `{version}` stay in the pages: the service fills them in.
import { readFile } from 'node:fs/promises';
import MarkdownIt, { type Token } from 'markdown-it';

/** The pages in the order of the navigation. The first one is the front page. */
const PAGES = [
  { name: 'index', title: 'Connect' },
  { name: 'clients', title: 'Clients' },
  { name: 'reference', title: 'Reference' },
  { name: 'errors', title: 'Errors' },
  { name: 'settings', title: 'Settings' },
  { name: 'modes', title: 'Modes' },
  { name: 'providers', title: 'Identity providers' },
  { name: 'upstreams', title: 'Your MCP servers' },
  { name: 'authors', title: 'Your own tools' },
  { name: 'rules', title: 'Rules' },
  { name: 'protocol', title: 'Protocol' },
  { name: 'deploy', title: 'Deploy' },
  { name: 'operations', title: 'Operations' },
  { name: 'doctor', title: 'postern doctor' },
  { name: 'architecture', title: 'Architecture' },
] as const;

/** Pages that only others lead to. */
const SUB_PAGES = [
  { name: 'threat-model', title: 'Threat model' },
  { name: 'benchmarks', title: 'Benchmarks' },
  { name: 'scaling', title: 'Scaling' },
  { name: 'provider-entra', title: 'Microsoft Entra ID' },
  { name: 'provider-okta', title: 'Okta' },
  { name: 'provider-auth0', title: 'Auth0' },
  { name: 'provider-keycloak', title: 'Keycloak' },
  { name: 'provider-google', title: 'Google' },
  { name: 'provider-cognito', title: 'Amazon Cognito' },
  { name: 'provider-authentik', title: 'authentik' },
  { name: 'provider-dex', title: 'dex' },
  { name: 'provider-hydra', title: 'Ory Hydra' },
] as const;

const ALL_PAGES = [...PAGES, ...SUB_PAGES];

/** By the names that they have in the site. */
const ASSETS = {
  'assets/style.css': 'assets/style.css',
  'assets/icon.svg': 'assets/icon.svg',
  'assets/benchmarks.svg': 'assets/benchmarks.svg',
  // The same at 16 and 32 pixels, where browsers look for it by themselves.
  'favicon.ico': 'assets/favicon.ico',
} as const;

const NOT_FOUND = `# Page not found

There is nothing at this address. Go to the [start page](index.md).
`;

/**
 * The site's files by name, as they are to lie in one folder.
 *
 * @throws Error for a page or an asset that is missing, and for a link to a page that is not there.
 */
export async function renderSite(docs: URL): Promise<ReadonlyMap<string, string | Buffer>> {
  const read = (name: string) => readFile(new URL(name, docs), 'utf8');
  const files = new Map<string, string | Buffer>();
  for (const { name, title } of ALL_PAGES) {
    files.set(
      `${name}.html`,
      renderPage(title, renderMarkdown(`${name}.md`, await read(`${name}.md`)), name),
    );
  }
  files.set('404.html', renderPage('Not found', renderMarkdown('404.md', NOT_FOUND)));
  for (const [name, source] of Object.entries(ASSETS)) {
    files.set(name, await readFile(new URL(source, docs)));
  }
  return files;
}

function renderMarkdown(file: string, markdown: string): string {
  const md = new MarkdownIt({ html: false, linkify: false });
  const { rules } = md.renderer;
  rules.link_open = (siblings, at, options, _env, self) => {
    const token = siblings[at];
    const href = token?.attrGet('href');
    if (token && typeof href === 'string') token.attrSet('href', rewriteLink(file, href));
    return self.renderToken(siblings, at, options);
  };
  const { image } = rules;
  rules.image = (siblings, at, options, env, self) => {
    const token = siblings[at];
    token?.attrSet('src', `{base_path}/${token.attrGet('src')}`);
    return image?.(siblings, at, options, env, self) ?? '';
  };
  rules.heading_open = (siblings, at, options, _env, self) => {
    siblings[at]?.attrSet('id', createAnchor(siblings[at + 1]?.content ?? ''));
    return self.renderToken(siblings, at, options);
  };
  // A wide table scrolls in its own frame; the keyboard must reach it.
  rules.table_open = () => '<div class="table" tabindex="0"><table>\n';
  rules.table_close = () => '</table></div>\n';
  const tokens = md.parse(markdown.replace(MARKERS, ''), {});
  const sections = tokens.flatMap(({ type, tag }, at) =>
    type === 'heading_open' && tag === 'h2' ? [at] : [],
  );
  const [first] = sections;
  if (first === undefined || sections.length <= SECTIONS_WITHOUT_LIST) return renderTokens(tokens);
  const labels = sections.map((at) => tokens[at + 1]?.content ?? '');
  const links = labels.map(
    (label) => `<li><a href="#${createAnchor(label)}">${renderInline(label)}</a></li>`,
  );
  const list = `<nav aria-label="On this page"><ul>\n${links.join('\n')}\n</ul></nav>\n`;
  return renderTokens(tokens.slice(0, first)) + list + renderTokens(tokens.slice(first));

  function renderTokens(some: Token[]): string {
    return escapePlaceholders(md.renderer.render(some, md.options, {}));
  }

  function renderInline(label: string): string {
    return escapePlaceholders(md.renderInline(label));
  }
}

/** A page with more sections than this lists them at its top. */
const SECTIONS_WITHOUT_LIST = 8;

/** `${version}` is an example's own: nothing is to be filled in there. */
const escapePlaceholders = (html: string): string => html.replace(/\$\{(?=\w+\})/g, '$$&#123;');

/** What npm run docs goes by, on lines of their own. */
const MARKERS = /^<!-- .* -->\n/gm;

/** As the common forges make them, so that one link works there and here. */
const createAnchor = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');

function rewriteLink(file: string, href: string): string {
  if (/^(https?:|#)/.test(href)) return href;
  const [, name, fragment = ''] = /^([\w-]+)\.md(#.*)?$/.exec(href) ?? [];
  const target = ALL_PAGES.find((known) => known.name === name);
  if (target === undefined) throw new Error(`docs/${file} links to ${href}, which is no page`);
  return buildAddress(target.name) + fragment;
}

const buildAddress = (name: string) => `{base_path}/${name === 'index' ? '' : name}`;

function renderPage(title: string, body: string, current?: string): string {
  const links = PAGES.map(({ name, title: label }) => {
    const here = name === current ? ' aria-current="page"' : '';
    return `<li><a href="${buildAddress(name)}"${here}>${label}</a></li>`;
  });
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · Postern</title>
<link rel="icon" sizes="32x32" href="{base_path}/favicon.ico">
<link rel="icon" type="image/svg+xml" href="{base_path}/assets/icon.svg">
<link rel="stylesheet" href="{base_path}/assets/style.css">
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
<header>
<a class="brand" href="{base_path}/">Postern</a>
<nav aria-label="Pages"><ul>
${links.join('\n')}
</ul></nav>
</header>
<main id="content">
${body}</main>
<footer>Postern {version} · <a href="{base_path}/health">health</a> · <a href="{base_path}/health/ready">readiness</a></footer>
</body>
</html>
`;
}

// What a tool's app is, as its server describes it (ext-apps, 2026-01-26): the page, and what the page may load.
import { withBase } from 'vitepress';
import { isObject, type JsonObject, readText } from '../json.ts';

const MIME_TYPE = 'text/html;profile=mcp-app';

/** What the playground declares: it shows apps. */
export const APPS_EXTENSION = { 'io.modelcontextprotocol/ui': { mimeTypes: [MIME_TYPE] } };

const readUi = ({ _meta: meta }: JsonObject): JsonObject =>
  isObject(meta) && isObject(meta.ui) ? meta.ui : {};

/** Undefined for a tool without one. */
export function findAppUri(tool: JsonObject): string | undefined {
  const { _meta: meta } = tool;
  const older = isObject(meta) ? readText(meta, 'ui/resourceUri') : undefined;
  const uri = readText(readUi(tool), 'resourceUri') ?? older;
  return uri?.startsWith('ui://') ? uri : undefined;
}

/** Whether the server lets its apps call the tool. */
export function isForApps(tool: JsonObject): boolean {
  const { visibility } = readUi(tool);
  return !Array.isArray(visibility) || visibility.includes('app');
}

export interface AppPage {
  readonly html: string;
  /** Domains, as the server declares them. */
  readonly csp: JsonObject;
}

/** `listed` is the resource as the list has it, if it has it. @throws Error in words for the user. */
export function readAppPage(result: JsonObject, listed: JsonObject | undefined): AppPage {
  const [first] = Array.isArray(result.contents) ? result.contents.filter(isObject) : [];
  if (first === undefined) throw new Error('The server has no page for it.');
  const mimeType = readText(first, 'mimeType') ?? '';
  if (mimeType.replaceAll(' ', '').toLowerCase() !== MIME_TYPE) {
    throw new Error(
      `Its page has ${mimeType ? `the type ${mimeType}` : 'no type'}; only ${MIME_TYPE} can be shown.`,
    );
  }
  const html = readText(first, 'text') ?? decodeBlob(readText(first, 'blob') ?? '');
  const { csp = readUi(listed ?? {}).csp } = readUi(first);
  return { html, csp: isObject(csp) ? csp : {} };
}

const decodeBlob = (blob: string): string =>
  new TextDecoder().decode(Uint8Array.from(atob(blob), (letter) => letter.charCodeAt(0)));

/** Members of `csp`, and what the frame calls them. */
const DOMAINS = {
  connectDomains: 'connect',
  resourceDomains: 'resource',
  frameDomains: 'frame',
  baseUriDomains: 'base',
} as const;

/** The address of the frame: the gateway makes its policy of what stands in it. */
export function buildFrameUrl(csp: JsonObject): string {
  const query = new URLSearchParams();
  for (const [member, name] of Object.entries(DOMAINS)) {
    const domains = csp[member];
    for (const domain of Array.isArray(domains) ? domains : []) {
      if (typeof domain === 'string') query.append(name, domain);
    }
  }
  return `${withBase('/playground/app')}?${query}`;
}

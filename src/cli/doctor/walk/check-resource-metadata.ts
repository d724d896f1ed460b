// RFC 9728: the document that names the authorization server, as strict clients read it.
import { isStringArray } from '../../../platform/json.ts';
import { quote } from '../../../platform/text.ts';
import { type Finding, failure, ok, warning } from '../finding.ts';
import { listResourceMetadataUrls, type Walk } from './walk.ts';

const CHECK = 'resource-metadata';

export async function checkResourceMetadata(walk: Walk): Promise<readonly Finding[]> {
  const url = await walk.findResourceMetadata();
  if (url === undefined) return [];
  const document = await walk.readResourceMetadata();
  if (document === undefined)
    return [
      failure(CHECK, `The 401 leads to ${url}, which cannot be read.`, {
        remedy: 'let the proxy in front pass /.well-known/* on to the gateway.',
      }),
    ];
  return [judgeDocument(document, walk, url), ...(await checkDerivedUrls(walk, url))];
}

function judgeDocument(
  { resource, authorization_servers: servers }: Readonly<Record<string, unknown>>,
  { endpoint, baseUrl }: Walk,
  url: string,
): Finding {
  if (!isStringArray(servers) || servers.length === 0)
    return failure(CHECK, `${url} names no authorization server.`);
  if (resource === endpoint)
    return ok(CHECK, 'The resource metadata names this very URL (RFC 9728 §3.3).');
  if (resource === baseUrl || resource === `${baseUrl}/`)
    return warning(
      CHECK,
      `The resource metadata names ${quote(resource)}, and strict clients compare it with ${endpoint}.`,
      { setting: 'OAUTH_MODE', remedy: 'OAUTH_MODE=broker names the URL that was called.' },
    );
  return failure(CHECK, `The resource metadata is about ${quote(resource)}, not ${endpoint}.`, {
    why: 'Clients refuse it (RFC 9728 §3.3).',
    setting: 'BASE_URL',
    remedy: `set BASE_URL=${baseUrl} on the gateway.`,
  });
}

/** Clients that do not read the challenge derive the place from the endpoint (RFC 9728 §3.1). */
async function checkDerivedUrls(walk: Walk, known: string): Promise<readonly Finding[]> {
  const urls = listResourceMetadataUrls(walk.endpoint).filter((url) => url !== known);
  const answers = await Promise.all(urls.map((url) => walk.probe(url)));
  const missing = answers.filter(({ status, json }) => status !== 200 || json === undefined);
  if (missing.length === 0) return [];
  const [first] = missing;
  return [
    warning(
      'resource-metadata.derived',
      `There is no resource metadata at ${missing.map(({ url }) => url).join(' and ')} (${first?.status}).`,
      {
        why: 'Clients that do not read the WWW-Authenticate header look for it there.',
        ...adviseOnWellKnown(walk.baseUrl),
      },
    ),
  ];
}

/** Well-known paths begin at the host: with a path in BASE_URL they are not below it. */
export const adviseOnWellKnown = (baseUrl: string) =>
  new URL(baseUrl).pathname === '/'
    ? { remedy: 'let the proxy in front pass /.well-known/* on to the gateway.' }
    : {
        setting: 'BASE_URL',
        remedy:
          'BASE_URL has a path, and well-known addresses begin at the host. Give the gateway a host name of its own, or have the proxy lead these addresses to the gateway, without the path.',
      };

// RFC 8414 §3.1 and §5: an issuer's metadata lies at one of several well-known paths, and clients differ in
// which of them they try.
import type { JsonObject } from '../../../platform/json.ts';
import type { Answer, Probe } from '../network/probe.ts';

export interface MetadataAtPath {
  readonly url: string;
  readonly status: number;
  /** Undefined where it is none. */
  readonly document: JsonObject | undefined;
  /** What the answer says where it is an error. */
  readonly said: string | undefined;
}

export async function findServerMetadata(
  issuer: string,
  probe: Probe,
): Promise<readonly MetadataAtPath[]> {
  const answers = await Promise.all(listMetadataUrls(issuer).map((url) => probe(url)));
  return answers.map(toMetadata);
}

/** In the order of the MCP specification: the issuer's path is put behind the well-known one, then before it. */
export function listMetadataUrls(issuer: string): readonly string[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, '');
  return [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    ...(path === '' ? [] : [`${origin}${path}/.well-known/openid-configuration`]),
  ];
}

function toMetadata({ url, status, json }: Answer): MetadataAtPath {
  const isDocument = status === 200 && json !== undefined;
  const said = json?.error_description;
  return {
    url,
    status,
    document: isDocument ? json : undefined,
    said: typeof said === 'string' ? said : undefined,
  };
}

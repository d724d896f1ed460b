// compose.yaml as data.
import { readFile } from 'node:fs/promises';
import { parse } from 'yaml';

export const ROOT = new URL('../../', import.meta.url);

export interface Service {
  readonly image: string;
  /** The folder with the Dockerfile, where the image is built here. */
  readonly build?: string;
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly expose?: readonly string[];
  /** `address:port:port` */
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, unknown>>;
  readonly networks?: { readonly default?: { readonly aliases?: readonly string[] } };
}

export type Services = Readonly<Record<string, Service>>;

export const readComposeText = (): Promise<string> =>
  readFile(new URL('compose.yaml', ROOT), 'utf8');

/** With its variables as they are when none is set. */
export async function readServices(): Promise<Services> {
  const text = (await readComposeText()).replace(/\$\{\w+:-([^}]*)\}/g, '$1');
  const { services }: { services: Services } = parse(text, { merge: true });
  return services;
}

/** The port that a service listens on in its container. */
export function getPort({ expose = [], ports = [] }: Service): number {
  return Number(expose[0] ?? ports[0]?.split(':').at(-1));
}

/** Those that others depend on come first. */
export function sortByDependencies(services: Services): readonly (readonly [string, Service])[] {
  const sorted = new Map<string, Service>();
  function add(name: string): void {
    const service = services[name];
    if (service === undefined) throw new Error(`compose.yaml has no service ${name}`);
    for (const other of Object.keys(service.depends_on ?? {})) if (!sorted.has(other)) add(other);
    sorted.set(name, service);
  }
  for (const name of Object.keys(services)) if (!sorted.has(name)) add(name);
  return [...sorted];
}

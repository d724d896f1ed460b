// Addresses of the services when there is no container: loopback ports instead of names.
import { getPort, type Service, type Services } from './read-compose.ts';

export interface Addresses {
  /** The port that a service listens on now. */
  getPort(name: string): number;
  /** A text with the addresses of the containers, with those of this machine. */
  translate(text: string): string;
}

/** `choosePort` gets the port that compose.yaml publishes on this machine, where it does. */
export async function assignAddresses(
  services: Services,
  choosePort: (published: number | undefined) => Promise<number>,
): Promise<Addresses> {
  const ports = new Map<string, number>();
  const here = new Map<string, string>();
  for (const [name, service] of Object.entries(services)) {
    const inside = getPort(service);
    const published = getPublishedPort(service);
    const port = await choosePort(published);
    ports.set(name, port);
    for (const alias of service.networks?.default?.aliases ?? []) {
      here.set(`${alias}:${inside}`, `localhost:${port}`);
    }
    here.set(`${name}:${inside}`, `127.0.0.1:${port}`);
    if (published !== undefined) here.set(`localhost:${published}`, `localhost:${port}`);
  }
  return {
    getPort: (name) => ports.get(name) ?? 0,
    translate: (text) => text.replace(/[\w.-]+:\d+/g, (found) => here.get(found) ?? found),
  };
}

function getPublishedPort({ ports = [] }: Service): number | undefined {
  const published = ports[0]?.split(':').at(-2);
  return published === undefined ? undefined : Number(published);
}

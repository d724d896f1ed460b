import type { Redis } from 'ioredis';

export interface SubscribedClient {
  readonly id: string;
  /** Seconds since it last sent a command. */
  readonly idle: number;
  /** How many channels it is subscribed to. */
  readonly channels: number;
}

/** The connections to this server that are subscribed to a channel. */
export async function subscribers(client: Redis): Promise<SubscribedClient[]> {
  const list = String(await client.call('CLIENT', 'LIST', 'TYPE', 'pubsub'));
  return list
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const fields = new Map(line.split(' ').map((field) => field.split('=') as [string, string]));
      return {
        id: fields.get('id') ?? '',
        idle: Number(fields.get('idle')),
        channels: Number(fields.get('sub')),
      };
    });
}

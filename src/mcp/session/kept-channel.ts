// §15.1: what is sent on one stream that is kept, from its opening to its end.

import type { ReplyStream } from '../../endpoint/message.ts';
import type { EventChannel } from '../streaming/response-stream.ts';
import type { KeptStream } from './kept-accounts.ts';

export interface KeptChannel extends EventChannel {
  isFull(): boolean;
  hasRoomToSpare(characters: number): boolean;
  /** Ends it without a last event. */
  close(): void;
}

/** What the channels of all streams have in common. */
export interface StreamWriting {
  begin(stream: KeptStream): void;
  send(stream: KeptStream, json: string, isNotification: boolean): void;
  end(stream: KeptStream, json: string): void;
  disconnect(stream: KeptStream): void;
  close(stream: KeptStream): void;
}

/** A class: thousands of them stand for minutes, and closures would take ten times the memory. */
export class StreamChannel implements KeptChannel {
  readonly items: ReplyStream;
  private readonly stream: KeptStream;
  private readonly writing: StreamWriting;

  constructor(stream: KeptStream, items: ReplyStream, writing: StreamWriting) {
    this.stream = stream;
    this.items = items;
    this.writing = writing;
  }

  begin(): void {
    this.writing.begin(this.stream);
  }

  send(json: string, isNotification: boolean): void {
    this.writing.send(this.stream, json, isNotification);
  }

  end(json: string): void {
    this.writing.end(this.stream, json);
  }

  disconnect(): void {
    this.writing.disconnect(this.stream);
  }

  isFull(): boolean {
    return this.stream.queue?.isFull() === true;
  }

  hasRoomToSpare(characters: number): boolean {
    return this.stream.queue?.hasRoomToSpare(characters) !== false;
  }

  close(): void {
    this.writing.close(this.stream);
  }
}

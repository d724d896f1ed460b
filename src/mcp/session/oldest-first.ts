// What has to be given up in the order in which it came. Not a Set: from one that loses its first members again and again,
// finding the first takes ever longer.

export interface Droppable {
  /** It was given up already, for another reason. */
  isForgotten: boolean;
}

export class OldestFirst<Item extends Droppable> {
  private items: Item[] = [];
  private head = 0;
  /** Those that were not given up. */
  private live = 0;

  get isEmpty(): boolean {
    return this.live === 0;
  }

  add(item: Item): void {
    if (this.items.length > 2 * this.live + SLACK) this.compact();
    this.items.push(item);
    this.live += 1;
  }

  /** To be called when one of its items was given up. */
  noteForgotten(): void {
    this.live -= 1;
  }

  first(): Item | undefined {
    while (this.items[this.head]?.isForgotten) this.head += 1;
    return this.items[this.head];
  }

  private compact(): void {
    this.items = this.items.filter(({ isForgotten }) => !isForgotten);
    this.head = 0;
  }
}

const SLACK = 32;

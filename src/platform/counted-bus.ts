// Reference-counted subscriptions by topic: the source is started for the first listener and stopped after the last.

export interface CountedTopic<Listener, Source> {
  readonly listeners: ReadonlySet<Listener>;
  /** The source that `start` returned; undefined until it returns. */
  readonly source: Source | undefined;
}

/** Limits; absent where subscriptions are limited elsewhere, for example per open stream. */
interface CountedBusBounds {
  readonly topics: number;
  /** Maximum number of topics per listener. */
  readonly topicsOfListener: number;
  /** Fails because a limit is reached. @throws always. */
  failFull(what: 'topics' | 'topicsOfListener'): never;
}

interface OpenTopic<Listener, Source> extends CountedTopic<Listener, Source> {
  readonly listeners: Set<Listener>;
  source: Source | undefined;
  /** Stops the source of the topic. */
  stop(): void;
}

export function createCountedBus<Topic, Listener, Source = void>(options: {
  /** A message published while `start` runs reaches the first listener. */
  start?(topic: Topic, first: Listener): Source;
  stop?(source: Source, topic: Topic): void;
  /** Receives errors thrown by a listener or by `stop`. Other listeners and the publisher are not affected. */
  onError(cause: unknown): void;
  readonly bounds?: CountedBusBounds;
}) {
  const { start, stop, onError, bounds } = options;
  const topics = new Map<Topic, OpenTopic<Listener, Source>>();
  const shownTopics: ReadonlyMap<Topic, CountedTopic<Listener, Source>> = topics;
  /** Kept only if there are limits: a set for each open stream would cost too much. */
  const topicsByListener = bounds && new Map<Listener, Set<Topic>>();

  function openTopic(topic: Topic, first: Listener) {
    const opened: OpenTopic<Listener, Source> = {
      listeners: new Set(),
      source: undefined,
      stop() {},
    };
    topics.set(topic, opened);
    add(opened, topic, first);
    if (start === undefined) return;
    try {
      const source = start(topic, first);
      opened.source = source;
      opened.stop = () => {
        try {
          stop?.(source, topic);
        } catch (cause) {
          onError(cause);
        }
      };
      // All listeners may have left in the meantime.
      if (topics.get(topic) !== opened) opened.stop();
    } catch (error) {
      // Other listeners may have opened the topic again in the meantime.
      if (topics.get(topic) === opened) end(topic);
      throw error;
    }
  }

  function add({ listeners }: OpenTopic<Listener, Source>, topic: Topic, listener: Listener) {
    listeners.add(listener);
    topicsByListener?.set(listener, (topicsByListener.get(listener) ?? new Set()).add(topic));
  }

  function unsubscribe(topic: Topic, listener: Listener) {
    const open = topics.get(topic);
    if (!open?.listeners.delete(listener)) return;
    const own = topicsByListener?.get(listener);
    if (own?.delete(topic) && own.size === 0) topicsByListener?.delete(listener);
    if (open.listeners.size > 0) return;
    topics.delete(topic);
    open.stop();
  }

  /** Stops the topic once its last listener has left. */
  function end(topic: Topic) {
    for (const listener of topics.get(topic)?.listeners ?? []) unsubscribe(topic, listener);
  }

  return {
    /** Topics with at least one listener. */
    topics: shownTopics,
    /**
     * Subscribes until the returned function is called. The same listener counts once per topic.
     *
     * @throws the error of `start` or `failFull`; then the listener is not added.
     */
    subscribe(topic: Topic, listener: Listener) {
      const open = topics.get(topic);
      if (bounds !== undefined && !open?.listeners.has(listener)) {
        const count = topicsByListener?.get(listener)?.size ?? 0;
        if (count >= bounds.topicsOfListener) bounds.failFull('topicsOfListener');
        if (open === undefined && topics.size >= bounds.topics) bounds.failFull('topics');
      }
      if (open === undefined) openTopic(topic, listener);
      else add(open, topic, listener);
      return () => unsubscribe(topic, listener);
    },
    unsubscribe,
    /** Unsubscribes from all topics. Only for a bus with limits, which keeps count of topics. */
    unsubscribeAll(listener: Listener) {
      for (const topic of topicsByListener?.get(listener) ?? []) unsubscribe(topic, listener);
    },
    /** Calls `tell` with the current listeners, skipping those that leave before their turn. */
    publish(topic: Topic, tell: (listener: Listener) => void) {
      for (const listener of [...(topics.get(topic)?.listeners ?? [])]) {
        if (!topics.get(topic)?.listeners.has(listener)) continue;
        try {
          tell(listener);
        } catch (cause) {
          onError(cause);
        }
      }
    },
    end,
    endAll() {
      for (const topic of topics.keys()) end(topic);
    },
  };
}

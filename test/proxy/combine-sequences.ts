/** Sequences of one client, each a list of pipelines; `k` is the counter that others increment too. */
export const sequences: Record<string, readonly (readonly (readonly (string | Buffer)[])[])[]> = {
  'an increment and a read in one pipeline': [
    [
      ['INCR', 'k'],
      ['GET', 'k'],
      ['INCR', 'k'],
      ['GET', 'k'],
    ],
  ],
  'many increments in one pipeline': [Array.from({ length: 50 }, () => ['INCR', 'k'])],
  'ups and downs in one pipeline': [
    [
      ['INCR', 'k'],
      ['DECRBY', 'k', '5'],
      ['INCRBY', 'k', '-3'],
      ['DECR', 'k'],
      ['DECRBY', 'k', '-9'],
      ['GET', 'k'],
    ],
  ],
  'read behind an answer': [[['INCR', 'k']], [['GET', 'k']], [['DECR', 'k']], [['GET', 'k']]],
  'deleted behind it': [
    [
      ['INCR', 'k'],
      ['DEL', 'k'],
      ['INCR', 'k'],
      ['GET', 'k'],
    ],
  ],
  'expired behind it': [
    [
      ['INCR', 'k'],
      ['PEXPIRE', 'k', '1'],
      ['PERSIST', 'k'],
      ['INCR', 'k'],
      ['TTL', 'k'],
    ],
  ],
  'its TTL stays': [
    [['SET', 'k', '1', 'EX', '1000']],
    [
      ['INCR', 'k'],
      ['INCRBY', 'k', '4'],
    ],
    [['TTL', 'k']],
  ],
  'set behind it, and before it': [
    [
      ['SET', 'k', '7'],
      ['INCR', 'k'],
      ['SET', 'k', '40'],
      ['INCR', 'k'],
      ['GET', 'k'],
    ],
  ],
  'another counter between': [
    [
      ['INCR', 'k'],
      ['INCR', 'other'],
      ['INCR', 'k'],
      ['INCR', 'other'],
      ['MGET', 'k', 'other'],
    ],
  ],
  'in a transaction': [[['INCR', 'k'], ['MULTI'], ['INCR', 'k'], ['GET', 'k'], ['EXEC'], ['INCR', 'k']]],
  'in a discarded transaction': [[['MULTI'], ['INCR', 'k'], ['DISCARD'], ['INCR', 'k']]],
  'by a script behind it': [
    [
      ['INCR', 'k'],
      ['EVAL', "return redis.call('GET', KEYS[1])", '1', 'k'],
      ['INCR', 'k'],
      ['GET', 'k'],
    ],
  ],
  'another database': [
    [
      ['INCR', 'k'],
      ['SELECT', '1'],
      ['INCR', 'k'],
      ['GET', 'k'],
      ['SELECT', '0'],
      ['INCR', 'k'],
    ],
  ],
  'not a number': [
    [['SET', 'k', 'x']],
    [
      ['INCR', 'k'],
      ['DECRBY', 'k', '2'],
    ],
    [['GET', 'k']],
    [['SET', 'k', '0']],
  ],
  'the wrong type': [
    [
      ['DEL', 'k'],
      ['RPUSH', 'k', 'a'],
    ],
    [
      ['INCR', 'k'],
      ['INCRBY', 'k', '4'],
    ],
    [['DEL', 'k']],
  ],
  'amounts that are no numbers': [
    [
      ['INCRBY', 'k', 'x'],
      ['INCRBY', 'k', ''],
      ['INCRBY', 'k', '+1'],
      ['INCRBY', 'k', '01'],
      ['INCRBY', 'k', ' 1'],
    ],
    [
      ['INCRBY', 'k', '1.0'],
      ['INCRBY', 'k', '-0'],
      ['INCRBY', 'k', '1e3'],
      ['DECRBY', 'k', '9223372036854775808'],
    ],
    [['DECRBY', 'k', '-9223372036854775808'], ['INCRBY', 'k'], ['INCR'], ['INCR', 'k', 'k'], ['GET', 'k']],
  ],
  'too far up': [
    [['SET', 'k', '9223372036854775806']],
    [
      ['INCR', 'k'],
      ['INCR', 'k'],
      ['INCRBY', 'k', '2'],
      ['DECR', 'k'],
    ],
    [
      ['INCRBY', 'k', '9223372036854775807'],
      ['GET', 'k'],
    ],
  ],
  'too far down': [
    [['SET', 'k', '-9223372036854775807']],
    [
      ['DECR', 'k'],
      ['DECR', 'k'],
      ['DECRBY', 'k', '2'],
      ['INCR', 'k'],
    ],
    [
      ['DECRBY', 'k', '9223372036854775807'],
      ['GET', 'k'],
    ],
  ],
  'larger than a double': [
    [['SET', 'k', '9007199254740993']],
    [
      ['INCR', 'k'],
      ['INCRBY', 'k', '2'],
      ['GET', 'k'],
    ],
  ],
  'fields of a hash': [
    [['DEL', 'k']],
    [
      ['HINCRBY', 'k', 'f', '1'],
      ['HINCRBY', 'k', 'g', '5'],
      ['HINCRBY', 'k', 'f', '-3'],
      ['HMGET', 'k', 'f', 'g'],
    ],
    [
      ['HINCRBY', 'k', 'f', 'x'],
      ['HINCRBY', 'k', Buffer.from([0, 255, 13, 10]), '2'],
      ['HINCRBY', 'k', '', '3'],
    ],
    [
      ['HGET', 'k', Buffer.from([0, 255, 13, 10])],
      ['HGET', 'k', ''],
      ['INCR', 'k'],
      ['HSET', 'k', 'f', 'x'],
    ],
    [
      ['HINCRBY', 'k', 'f', '1'],
      ['HINCRBY', 'k', 'g', '1'],
    ],
    [['DEL', 'k']],
  ],
  'all keys gone behind it': [[['INCR', 'k'], ['FLUSHDB'], ['INCR', 'k'], ['GET', 'k']]],
  'names behind it': [
    [
      ['DEL', 'k'],
      ['INCR', 'k'],
      ['EXISTS', 'k', 'k'],
      ['TYPE', 'k'],
      ['RENAME', 'k', 'j'],
      ['INCR', 'k'],
    ],
  ],
  'an unknown command behind it': [
    [
      ['INCR', 'k'],
      ['NOSUCHCOMMAND', 'k'],
      ['GET', 'k'],
    ],
  ],
  'a key of bytes': [
    [
      ['INCR', Buffer.from([0xff, 0, 1])],
      ['GET', Buffer.from([0xff, 0, 1])],
      ['INCR', 'k'],
    ],
  ],
  'blocked behind it': [
    [
      ['INCR', 'k'],
      ['RPUSH', 'l', 'x'],
      ['BLPOP', 'l', '1'],
      ['INCR', 'k'],
      ['GET', 'k'],
    ],
  ],
  'watched before it': [
    [['WATCH', 'k'], ['INCR', 'k'], ['MULTI'], ['GET', 'k'], ['EXEC']],
    [['WATCH', 'other'], ['INCR', 'k'], ['MULTI'], ['GET', 'k'], ['EXEC']],
  ],
}

/** Sequences in which it matters that the key is not there, or that nobody else touches it. */
export const aloneIn = [
  'watched before it',
  'the wrong type',
  'names behind it',
  'deleted behind it',
  'all keys gone behind it',
]

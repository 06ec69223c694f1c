import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    # A database that has all of these already is up to date; there is no other way from them.
    replaces = [
        ("capacity", "0002_error_rate"),
        ("capacity", "0003_status_and_message"),
        ("capacity", "0004_request_key"),
        ("capacity", "0005_bypass_digest"),
    ]

    dependencies = [
        ('accounts', '0001_initial'),
        ('definitions', '0001_initial'),
        ('fleet', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Blackout',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('starts_at', models.DateTimeField()),
                ('ends_at', models.DateTimeField()),
                ('reason', models.CharField(max_length=200)),
                ('set_by', models.CharField(max_length=150)),
                ('set_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ('starts_at', 'id'),
                'constraints': [models.CheckConstraint(condition=models.Q(('ends_at__gt', models.F('starts_at'))), name='blackout_ends_after_it_starts')],
            },
        ),
        migrations.CreateModel(
            name='Comparison',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('rounds', models.PositiveIntegerField(default=3)),
                ('actor', models.CharField(max_length=150)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('result', models.JSONField(null=True)),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='accounts.account')),
                ('first', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='compared_as_first', to='definitions.capacitytest')),
                ('second', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='compared_as_second', to='definitions.capacitytest')),
            ],
            options={
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='Run',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('label', models.CharField(max_length=200)),
                ('plan', models.JSONField()),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('starting', 'Starting'), ('running', 'Running'), ('done', 'Done'), ('stopped', 'Stopped'), ('refused', 'Refused'), ('failed', 'Failed')], default='waiting', max_length=8)),
                ('actor', models.CharField(max_length=150)),
                ('request_key', models.CharField(max_length=40, null=True, unique=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('started_at', models.DateTimeField(null=True)),
                ('ended_at', models.DateTimeField(null=True)),
                ('attempt', models.PositiveIntegerField(default=0)),
                ('lease_until', models.DateTimeField(null=True)),
                ('begin_by', models.DateTimeField(null=True)),
                ('placed_at', models.DateTimeField(null=True)),
                ('phase', models.CharField(blank=True, default='', max_length=400)),
                ('stop_requested_at', models.DateTimeField(null=True)),
                ('stopped_by', models.CharField(blank=True, default='', max_length=150)),
                ('direct_address', models.CharField(blank=True, default='', max_length=60)),
                ('approved_by', models.CharField(blank=True, default='', max_length=150)),
                ('bypass_digest', models.CharField(blank=True, default='', max_length=64)),
                ('message', models.CharField(blank=True, default='', max_length=400)),
                ('generator', models.JSONField(null=True)),
                ('result', models.JSONField(null=True)),
                ('limit_set_at', models.DateTimeField(null=True)),
                ('limit_set_by', models.CharField(blank=True, default='', max_length=150)),
                ('account', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='accounts.account')),
                ('comparison', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='capacity.comparison')),
                ('pool', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='runs', to='definitions.pool')),
                ('region', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='runs', to='fleet.region')),
                ('test', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='runs', to='definitions.capacitytest')),
            ],
            options={
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='Second',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField()),
                ('target', models.FloatField()),
                ('offered', models.PositiveIntegerField()),
                ('answered', models.PositiveIntegerField()),
                ('errors', models.PositiveIntegerField()),
                ('in_flight', models.PositiveIntegerField()),
                ('p50_ms', models.FloatField(null=True)),
                ('p95_ms', models.FloatField(null=True)),
                ('p99_ms', models.FloatField(null=True)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='seconds', to='capacity.run')),
            ],
            options={
                'ordering': ('run', 'at'),
            },
        ),
        migrations.CreateModel(
            name='Step',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('ordinal', models.PositiveIntegerField()),
                ('purpose', models.CharField(max_length=10)),
                ('rate', models.FloatField()),
                ('users', models.PositiveIntegerField(default=0)),
                ('started_at', models.DateTimeField()),
                ('seconds', models.FloatField()),
                ('offered', models.FloatField()),
                ('answered', models.FloatField()),
                ('errors', models.JSONField(default=dict)),
                ('error_rate', models.FloatField(default=0)),
                ('p50_ms', models.FloatField(null=True)),
                ('p95_ms', models.FloatField(null=True)),
                ('p99_ms', models.FloatField(null=True)),
                ('max_ms', models.FloatField(null=True)),
                ('histogram', models.TextField(blank=True, default='')),
                ('status', models.CharField(max_length=4)),
                ('message', models.CharField(blank=True, default='', max_length=400)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='steps', to='capacity.run')),
            ],
            options={
                'ordering': ('run', 'ordinal'),
            },
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(fields=['account', '-id'], name='capacity_ru_account_205941_idx'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(fields=['test', '-id'], name='capacity_ru_test_id_f94498_idx'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('state__in', ('starting', 'running'))), fields=['lease_until'], name='runs_active'),
        ),
        migrations.AddConstraint(
            model_name='second',
            constraint=models.UniqueConstraint(fields=('run', 'at'), name='one_row_per_second_of_a_run'),
        ),
        migrations.AddConstraint(
            model_name='step',
            constraint=models.UniqueConstraint(fields=('run', 'ordinal'), name='one_step_per_ordinal'),
        ),
    ]

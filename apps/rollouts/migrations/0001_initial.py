import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    # A database that has all of these already is up to date; there is no other way from them.
    replaces = [
        ("rollouts", "0002_quarantine"),
        ("rollouts", "0003_left_out"),
        ("rollouts", "0004_ticket_secrets"),
        ("rollouts", "0005_builds"),
    ]

    dependencies = [
        ('fleet', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Revision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('digest', models.CharField(max_length=64)),
                ('snapshot', models.BinaryField()),
                ('bundle', models.BinaryField()),
                ('summary', models.CharField(max_length=400)),
                ('actor', models.CharField(max_length=150)),
                ('quarantined', models.JSONField(default=list)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('fleet', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='revisions', to='fleet.fleet')),
            ],
            options={
                'ordering': ('-number',),
                'base_manager_name': 'objects',
            },
        ),
        migrations.CreateModel(
            name='FleetSync',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('compiled_generation', models.PositiveBigIntegerField(default=0)),
                ('compiled_digest', models.CharField(blank=True, max_length=64)),
                ('left_out', models.JSONField(default=list)),
                ('builds', models.JSONField(null=True)),
                ('held_by', models.CharField(blank=True, max_length=150)),
                ('refused_digest', models.CharField(blank=True, max_length=64)),
                ('asked_again_at', models.DateTimeField(null=True)),
                ('compile_error', models.CharField(blank=True, max_length=2000)),
                ('claimed_by', models.CharField(blank=True, max_length=80)),
                ('claimed_until', models.DateTimeField(null=True)),
                ('attempt', models.PositiveBigIntegerField(default=0)),
                ('fleet', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='sync', to='fleet.fleet')),
                ('held_at', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='rollouts.revision')),
                ('last_good', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='rollouts.revision')),
                ('wanted', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='rollouts.revision')),
            ],
        ),
        migrations.CreateModel(
            name='Rollout',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('change', 'Change'), ('rollback', 'Rollback'), ('repair', 'Repair')], default='change', max_length=8)),
                ('generation', models.PositiveBigIntegerField()),
                ('state', models.CharField(choices=[('draft', 'Draft'), ('compiled', 'Compiled'), ('validated', 'Validated'), ('awaiting_approval', 'Awaiting Approval'), ('pushing', 'Pushing'), ('soaking', 'Soaking'), ('done', 'Done'), ('rolling_back', 'Rolling Back'), ('rolled_back', 'Rolled Back'), ('failed', 'Failed'), ('superseded', 'Superseded')], default='compiled', max_length=20)),
                ('actor', models.CharField(max_length=150)),
                ('reason', models.CharField(blank=True, max_length=400)),
                ('message', models.CharField(blank=True, max_length=2000)),
                ('object_label', models.CharField(blank=True, max_length=400)),
                ('line', models.PositiveIntegerField(null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('fleet', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='rollouts', to='fleet.fleet')),
                ('previous', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='rollouts.revision')),
                ('revision', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='rollouts', to='rollouts.revision')),
            ],
            options={
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='Step',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('wave', models.PositiveSmallIntegerField(default=1)),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('pushing', 'Pushing'), ('done', 'Done'), ('unreachable', 'Unreachable'), ('refused', 'Refused'), ('rolled_back', 'Rolled Back')], default='waiting', max_length=12)),
                ('how', models.CharField(blank=True, max_length=10)),
                ('generation', models.PositiveBigIntegerField(default=0)),
                ('tries', models.PositiveIntegerField(default=0)),
                ('message', models.CharField(blank=True, max_length=2000)),
                ('started_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('node', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='steps', to='fleet.node')),
                ('rollout', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='steps', to='rollouts.rollout')),
            ],
            options={
                'ordering': ('wave', 'node__name'),
            },
        ),
        migrations.CreateModel(
            name='TicketSecrets',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('sealed', models.BinaryField()),
                ('digest', models.CharField(max_length=64)),
                ('renewed_at', models.DateTimeField()),
                ('fleet', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='ticket_secrets', to='fleet.fleet')),
            ],
        ),
        migrations.CreateModel(
            name='Quarantine',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('object_id', models.CharField(max_length=40)),
                ('part_of', models.CharField(max_length=40)),
                ('label', models.CharField(max_length=400)),
                ('content', models.CharField(max_length=64)),
                ('haproxy_versions', models.JSONField(default=list)),
                ('reason', models.CharField(max_length=40)),
                ('message', models.CharField(max_length=1000)),
                ('since', models.DateTimeField(auto_now_add=True)),
                ('fleet', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='quarantines', to='fleet.fleet')),
            ],
            options={
                'indexes': [models.Index(fields=['part_of'], name='rollouts_qu_part_of_17f4b5_idx')],
                'constraints': [models.UniqueConstraint(fields=('fleet', 'object_id'), name='quarantined_once_in_fleet')],
            },
        ),
        migrations.AddIndex(
            model_name='revision',
            index=models.Index(fields=['fleet', 'digest'], name='rollouts_re_fleet_i_4809a1_idx'),
        ),
        migrations.AddConstraint(
            model_name='revision',
            constraint=models.UniqueConstraint(fields=('fleet', 'number'), name='revision_number_in_fleet'),
        ),
        migrations.AddIndex(
            model_name='rollout',
            index=models.Index(fields=['fleet', 'state'], name='rollouts_ro_fleet_i_f77552_idx'),
        ),
        migrations.AddConstraint(
            model_name='step',
            constraint=models.UniqueConstraint(fields=('rollout', 'node'), name='one_step_per_node'),
        ),
    ]
